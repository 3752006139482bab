"""A user's own spreadsheet, from the command line to the exported classifier."""

from __future__ import annotations

import csv
import gzip
import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tartan.runs.prepare import enabled_stages, prepare
from tartan.runs.run import run_experiment
from tests.in_process import config_of

pytestmark = pytest.mark.slow

WORDS = {"apple": "Fruit", "river": "Water", "stone": "Rock"}


@pytest.fixture
def own(tmp_path):
    """A labelled spreadsheet as Excel writes it, and unlabelled texts."""
    words = list(WORDS) * 20
    rows = [[f'a "{word}", number {i}\nand more', WORDS[word]] for i, word in enumerate(words)]
    with (tmp_path / "labels.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([["Comment", "Topic"], *rows])
    (tmp_path / "texts").mkdir()
    for name in ("a.txt", "b.txt"):
        texts = "".join(f"the {word} of {name} {i}\n" for word in WORDS for i in range(20))
        (tmp_path / "texts" / name).write_text(texts)
    (tmp_path / "texts" / "c.txt.gz").write_bytes(gzip.compress(b"one more\n"))
    return tmp_path


@pytest.fixture
def options(cache_dir):
    """What makes a run one of seconds."""
    return [
        "encoder=tiny", f"cache_dir={cache_dir}", "max_steps=3", "task.max_length=32",
        "trainer.enable_progress_bar=false", "trainer.precision=32-true", "micro_batch_size=8",
    ]  # fmt: skip


@pytest.mark.longest
def test_a_spreadsheet_and_a_folder_of_texts_become_a_classifier(own, options, run_cli):
    """As a user calls it, in the folder where the files are."""
    given = ["+experiment=custom", "task.train=labels.csv", "auxiliary.dapt.path=texts/"]
    finished = run_cli(*given, *options)
    assert finished.returncode == 0, finished.stderr
    assert "texts are read from column 'Comment', labels from 'Topic'" in finished.stdout
    (folder,) = (own / "runs" / "custom").iterdir()
    result = json.loads((folder / "result.json").read_text())
    assert [result[split]["whole"]["examples"] for split in ("dev", "test")] == [12, 12]
    assert result["labels"] == ["Fruit", "Rock", "Water"]
    assert result["train"] == {"examples": 36, "labels": dict.fromkeys(result["labels"], 12)}
    assert set(result["auxiliaries"]) == {"dapt", "tapt"}
    assert result["auxiliaries"]["dapt"]["examples"] == 121
    assert result["data"]["columns"] == {"text": "Comment", "label": "Topic", "text_pair": None}

    with (folder / "splits.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == list(WORDS.values()) * 20
    assert [int(row["line"]) for row in rows[:3]] == [2, 4, 6]
    assert [row["split"] for row in rows].count("dev") == 12
    assert f" {folder.relative_to(own)}/splits.csv" in finished.stdout


def test_a_run_without_a_test_split_trains_on_its_examples_too(own, options, tmp_path):
    given = ["+experiment=custom", f"task.train={own}/labels.csv", "task.test_share=0"]
    result = run_experiment(config_of([*given, *options]), tmp_path / "run")
    assert not result.is_tested
    assert (result.train.examples, result.dev.whole.examples) == (48, 12)
    assert [baseline.test for baseline in result.baselines] == [None]
    assert (tmp_path / "run" / "classifier" / "config.json").is_file()


def test_class_weights_and_a_chosen_metric_go_through_a_run(own, options, tmp_path):
    """The evaluation's loss stays unweighted: with the body frozen at lr 0 it does not change."""
    given = ["+experiment=custom_finetune", f"task.train={own}/labels.csv", *options]
    still = [f"method.stages.finetune.optimisation.{name}_lr=0" for name in ("body", "end_head")]
    results = [
        run_experiment(config_of([*given, *still, *more]), tmp_path / str(number)).as_json()
        for number, more in enumerate(
            ([], ["classifier.class_weights=[1,20,3]", "task.metric=auroc"])
        )
    ]
    losses = [result["test"]["whole"]["metrics"]["loss"] for result in results]
    assert losses[0] == losses[1]
    assert results[1]["metric"] == "auroc"
    assert "auroc" not in results[0]["test"]["whole"]["metrics"]


def test_a_classifier_of_pairs_is_that_of_transformers(tmp_path, options):
    lines = [["first", "second", "label"]]
    lines += [[f"a {i}", f"{'a' if i % 2 else 'b'} {i}", i % 2] for i in range(60)]
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    columns = [f"task.train={tmp_path}/pairs.csv", "task.text=first", "task.text_pair=second"]
    config = config_of(["+experiment=custom", *columns, *options])
    found = prepare(config, enabled_stages(config))
    assert "token_type_ids" in found.splits.train.column_names
    assert "token_type_ids" in found.auxiliaries["tapt"][1].rows.column_names
    result = run_experiment(config, tmp_path / "run").as_json()
    folder = tmp_path / "run" / "classifier"
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    end_task = found.end_task
    confusion = [[0, 0], [0, 0]]
    losses = []
    for first, second, label in zip(
        end_task.test.texts, end_task.test.pairs, end_task.test.labels, strict=True
    ):
        with torch.no_grad():
            logits = model(**tokenizer(first, second, return_tensors="pt")).logits[0]
        confusion[label][int(logits.argmax())] += 1
        losses.append(-logits.log_softmax(0)[label])
    assert result["test"]["whole"]["confusion"] == confusion
    loss = result["test"]["whole"]["metrics"]["loss"]
    assert loss == pytest.approx(float(torch.stack(losses).mean()), abs=1e-5)
