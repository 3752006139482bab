"""The baseline of a run."""

from __future__ import annotations

import json

import tartan.runs.outcome as baseline
from tartan.runs.outcome import tf_idf_baseline
from tartan.settings import build
from tests.in_process import config_of


def table(tmp_path, texts=("the {} apple", "the {} river")):
    words = [f"w{number}" for number in range(40)]
    rows = [
        {"text": texts[number % 2].format(word), "label": "ab"[number % 2]}
        for number, word in enumerate(words)
    ]
    for split, part in (("train", rows[:20]), ("dev", rows[20:30]), ("test", rows[30:])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (tmp_path / f"{split}.jsonl").write_text(lines)
    files = [f"task.{split}={tmp_path}/{split}.jsonl" for split in ("train", "dev", "test")]
    return ["task=files", *files]


def found(tmp_path, *options, **kinds):
    config = config_of([*table(tmp_path, **kinds), *options])
    return tf_idf_baseline(config, build(config.task, "task").load())


def test_it_has_the_runs_metrics_on_dev_and_test(tmp_path):
    own = found(tmp_path)
    assert own.name == "tf_idf"
    assert own.settings == "words=1, C=1, class_weight=balanced"  # all are as good: the first
    assert own.dev["macro_f1"] == own.test["macro_f1"] == 1.0  # a word tells the label
    assert own.dev.keys() >= {"macro_f1", "micro_f1", "weighted_f1"}


def test_a_search_does_not_look_at_test(tmp_path):
    assert found(tmp_path, "evaluate_test=false").test is None


def test_images_texts_without_words_and_many_texts_have_none(tmp_path, cache_dir, monkeypatch):
    config = config_of(["task=digits", f"cache_dir={cache_dir}"])
    assert tf_idf_baseline(config, build(config.task, "task").load()) is None
    assert found(tmp_path, texts=("! ?", "? !")) is None
    monkeypatch.setattr(baseline, "_MOST", 19)
    assert found(tmp_path) is None
