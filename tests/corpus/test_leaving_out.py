"""What is left out besides exact repeats: evaluated texts, poor articles."""

from __future__ import annotations

import json
import random

import pytest
from hydra import compose, initialize_config_dir

from tartan.corpus.steps import options_of
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.corpus.made_up import built, contents, texts_of, write_shard

WORDS = [a + b for a in ("ta", "ri", "mo", "ke", "lu", "sen") for b in ("den", "ba", "rol", "mi")]


def sentence(rng, words=20):
    return " ".join(rng.choices(WORDS, k=words))


@pytest.fixture
def task(tmp_path):
    """A task of 3 x 4 texts, as a config, and its texts by split."""
    rng, texts = random.Random(0), {}
    for split in ("train", "dev", "test"):
        texts[split] = [sentence(rng) for _ in range(4)]
        rows = [{"text": t, "label": f"l{i % 2}"} for i, t in enumerate(texts[split])]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    paths = {split: str(tmp_path / f"{split}.jsonl") for split in texts}
    target = {"_target_": "tartan.data.file_task.FileTask", "name": "own", "metric": "macro_f1"}
    return {**target, "max_length": 64, **paths}, texts


def test_examples_with_texts_of_dev_and_test_stay_out_and_are_counted(tmp_path, task):
    config, texts = task
    rng = random.Random(1)
    dev, test = texts["dev"][0].split(), texts["test"][3].split()
    clean = [sentence(rng) for _ in range(5)]
    leaks = [
        texts["test"][1].upper() + "!",
        " ".join([*clean[0].split()[:6], *dev[4:16], *clean[1].split()[:6]]),
    ]
    allowed = [
        *texts["train"],
        " ".join([*clean[2].split()[:9], *test[:11], *clean[3].split()[:9]]),
    ]
    records = [{"text": text} for text in [clean[0], leaks[0], *allowed, leaks[1], *clean[1:]]]
    write_shard(tmp_path / "in" / "a.jsonl", records)
    corpus = built(tmp_path / "in", tmp_path / "out", tasks={"task": config})
    assert texts_of(tmp_path / "out") == [clean[0], *allowed, *clean[1:]]
    assert corpus.counts["examples"]["contaminated"] == 2
    built(tmp_path / "in", tmp_path / "plain", decontaminate=12)
    with pytest.raises(UserError, match="of other evaluated;"):
        built(tmp_path / "in", tmp_path / "plain", tasks={"task": config})


def filters(*options):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        given = ["sources=x", "output=x", "decontaminate=null", *options]
        return options_of(compose("build_corpus", overrides=given)).filters


@pytest.mark.parametrize("quality", ["gopher", "fineweb"])
def test_articles_of_low_quality_are_left_out_whole_and_counted(tmp_path, quality):
    rng = random.Random(3)
    lines = [
        f"And that is the {sentence(rng, 9)} to have with {sentence(rng, 9)}." for _ in range(8)
    ]
    low = "# # # ... # # #\n" * 40
    records = [{"text": "\n\n".join(lines)}, {"text": low}]
    write_shard(tmp_path / "in" / "a.jsonl", records)
    chosen = filters(f"quality={quality}")
    corpus = built(tmp_path / "in", tmp_path / "out", filters=chosen)
    assert texts_of(tmp_path / "out") == lines
    counts = corpus.counts["records"]
    assert (counts["read"], counts["filtered"], counts["kept"]) == (2, 1, 1)


def test_a_filter_with_a_state_takes_each_file_alone(tmp_path):
    for file in "abc":
        records = [{"text": f"text {number} of {file}"} for number in range(40)]
        write_shard(tmp_path / "in" / f"{file}.jsonl", records)
    half = {
        "half": {"_target_": "datatrove.pipeline.filters.SamplerFilter", "rate": 0.5, "seed": 0}
    }
    for workers in (1, 2):
        built(tmp_path / "in", tmp_path / str(workers), workers=workers, filters=half)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    assert 0 < len(texts_of(tmp_path / "1")) < 120
