"""Other kinds of end task, from the user's table to what is served."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
import torch
from lightning.pytorch import Trainer
from torch.utils.data import DataLoader
from transformers import pipeline

from tartan import MetaTartan, TartanData
from tartan.predict.predict import Settings, predict_file
from tartan.runs.prepare import enabled_stages, prepare
from tartan.runs.run import run_experiment
from tests.conftest import REAL_DATA
from tests.in_process import config_of

FRUITS, COLOURS = ("apple", "pear"), ("red", "blue")


@pytest.fixture
def table(tmp_path):
    """Texts with several labels in a column, and some without one."""
    rows = ["text,topics"]
    for i in range(80):
        fruit, colour = FRUITS[i % 2], COLOURS[i // 2 % 2]
        named = [fruit, colour][: i % 3]
        rows.append(f"the {colour} {fruit} number {i},{'|'.join(named)}")
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "labels.csv"


@pytest.fixture
def options(cache_dir):
    return [
        "+experiment=custom", "encoder=tiny", f"cache_dir={cache_dir}", "max_steps=4",
        "task.max_length=32", "trainer.enable_progress_bar=false", "trainer.precision=32-true",
    ]  # fmt: skip


def test_a_text_gets_all_labels_above_their_thresholds(table, options, tmp_path):
    """What the run scores, its classifier predicts, here and in Transformers."""
    given = ["task=multi_label", f"task.train={table}", "task.separator=|", "task.label=topics"]
    config = config_of([*given, *options])
    task = prepare(config, enabled_stages(config)).end_task
    result = run_experiment(config, tmp_path / "run")
    assert result.data["kind"] == "multi_label"
    assert (result.metric, result.baselines) == ("micro_f1", [])
    folder = tmp_path / "run" / "classifier"
    thresholds = json.loads((folder / "thresholds.json").read_text())
    assert list(thresholds) == list(task.labels) == sorted([*FRUITS, *COLOURS])
    assert set(thresholds.values()) != {0.5}
    checkpoint = torch.load(tmp_path / "run" / "checkpoints" / "joint" / "best.ckpt")
    assert checkpoint["state_dict"]["metrics.thresholds"].tolist() == [*thresholds.values()]

    test = pd.DataFrame({"text": task.test.texts})
    test.to_csv(tmp_path / "new.csv", index=False)
    for ending in ("csv", "jsonl"):
        written = predict_file(
            Settings(str(folder), str(tmp_path / "new.csv"), f"{tmp_path}/p.{ending}")
        )
        assert written.rows == len(test)
    predicted = pd.read_csv(tmp_path / "p.csv", keep_default_na=False)
    lists = pd.read_json(tmp_path / "p.jsonl", lines=True)["predicted_labels"]
    assert predicted["predicted_labels"].tolist() == ["|".join(one) for one in lists]
    classifier = pipeline(
        "text-classification", str(folder), function_to_apply="sigmoid", top_k=None
    )
    codes = []
    for index, scores in enumerate(classifier(task.test.texts)):
        own = {one["label"]: one["score"] for one in scores}
        values = [predicted[f"probability_{name}"][index] for name in task.labels]
        assert np.allclose([own[name] for name in task.labels], values, atol=1e-5)
        assert lists[index] == [
            n for n, v in zip(task.labels, values, strict=True) if v > thresholds[n]
        ]
        codes.append([int(name in lists[index]) for name in task.labels])
    right = int((np.array(codes) & np.array(task.test.labels)).sum())
    f1 = 2 * right / max(1, np.array(codes).sum() + np.array(task.test.labels).sum())
    assert result.score("whole") == pytest.approx(f1, abs=1e-6)
    card = (folder / "README.md").read_text()
    assert "thresholds.json" in card
    assert "softmax" not in card


def test_in_a_program_thresholds_are_stored_with_the_weights(tmp_path, cache_dir):
    rows = [{"text": f"{f} {c} {i}", "label": [f, c][: i % 3]} for i in range(60)
            for f, c in [(FRUITS[i % 2], COLOURS[i // 2 % 2])]]  # fmt: skip
    options = {"kind": "multi_label", "encoder": "tiny", "max_length": 16, "cache_dir": cache_dir}
    data = TartanData(rows, auxiliaries={"tapt": "task"}, **options)
    module = MetaTartan.for_data(data, lr=1e-3)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = Trainer(
        max_steps=4, val_check_interval=2, accelerator="cpu", default_root_dir=tmp_path, **quiet
    )
    trainer.fit(module, datamodule=data)
    best = trainer.checkpoint_callback.best_model_path
    scores = trainer.test(module, datamodule=data, ckpt_path="best", verbose=False)[0]
    again = MetaTartan.load_from_checkpoint(best)
    assert again.metrics.thresholds.tolist() == module.metrics.thresholds.tolist() != [0.5] * 4
    test = TartanData(rows[:6], test=rows, dev=rows, **options)  # other, fewer labels in train
    same = Trainer(accelerator="cpu", **quiet).test(again, datamodule=test, verbose=False)[0]
    assert same["test/macro_f1"] != scores["test/macro_f1"]
    (predicted,) = Trainer(accelerator="cpu", **quiet).predict(again, DataLoader(["red apple"]))
    above = predicted["probabilities"][0].double() > again.metrics.thresholds
    assert predicted["label"] == [[n for n, one in zip(again.labels, above, strict=True) if one]]


@pytest.mark.slow
def test_sentences_get_their_relations(tmp_path, cache_dir):
    """SciERC's rows of one sentence are its labels; a few steps rank them better than chance."""
    if not REAL_DATA.is_dir():
        pytest.skip("needs the real data")
    relations = defaultdict(set)
    for line in (REAL_DATA / "scierc" / "train.jsonl").read_text().splitlines():
        row = json.loads(line)
        relations[re.sub(r"(\[\[|\]\]|<<|>>) ", "", row["text"])].add(row["label"])
    rows = [{"text": text, "label": sorted(own)} for text, own in relations.items()][:600]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["task=multi_label", f"task.train={tmp_path}/rows.jsonl", "encoder=minilm"]
    options += [f"cache_dir={cache_dir}", "max_steps=60", "trainer.enable_progress_bar=false"]
    result = run_experiment(config_of(["+experiment=custom_finetune", *options]), tmp_path / "run")
    examples, counts = result.train.examples, result.train.labels
    chance = sum(counts.values()) / len(counts) / examples  # of the mean average precision
    assert result.test.whole.metrics["average_precision"] > chance + 0.05
    given = Settings(str(tmp_path / "run"), f"{tmp_path}/rows.jsonl", f"{tmp_path}/out.jsonl")
    assert predict_file(given).rows == 600
    frame = pd.read_json(tmp_path / "out.jsonl", lines=True)
    assert set(frame["predicted_labels"].explode().dropna()) <= set(result.labels)


@pytest.mark.parametrize("encoder", ["tiny", pytest.param("minilm", marks=pytest.mark.slow)])
def test_a_text_gets_a_number(encoder, tmp_path, cache_dir):
    """How many relations a sentence of SciERC states; made-up texts where this is not slow.

    Transformers gives the same numbers, which correlate as the run says.
    """
    texts = {f"{COLOURS[i % 2]} apple {i}": 300 * (i % 2) + i for i in range(80)}
    if encoder == "minilm":
        if not REAL_DATA.is_dir():
            pytest.skip("needs the real data")
        lines = (REAL_DATA / "scierc" / "train.jsonl").read_text().splitlines()
        sentences = (re.sub(r"(\[\[|\]\]|<<|>>) ", "", json.loads(line)["text"]) for line in lines)
        texts = dict(Counter(sentences).most_common()[::2])
    table = pd.DataFrame({"text": texts.keys(), "relations": texts.values()})
    table.to_csv(tmp_path / "counts.csv", index=False)
    options = ["task=regression", f"task.train={tmp_path}/counts.csv", "task.label=relations"]
    options += [f"encoder={encoder}", "max_steps=30", f"cache_dir={cache_dir}"]
    options += ["trainer.enable_progress_bar=false", "task.max_length=64"]
    options += ["trainer.precision=32-true"]
    result = run_experiment(config_of(["+experiment=custom_finetune", *options]), tmp_path / "run")
    assert (result.data["kind"], result.metric) == ("regression", "spearman")
    folder = tmp_path / "run" / "classifier"
    predict_file(Settings(str(folder), f"{tmp_path}/counts.csv", f"{tmp_path}/out.csv"))
    found = pd.read_csv(tmp_path / "out.csv")
    splits = pd.read_csv(tmp_path / "run" / "splits.csv", encoding="utf-8-sig")["split"]
    test = found[(splits == "test").to_numpy()]
    metrics = result.test.whole.metrics
    for name in ("spearman", "pearson"):
        value = test["relations"].corr(test["predicted_value"], method=name)
        assert metrics[name] == pytest.approx(value, abs=1e-3)
    errors = (test["relations"] - test["predicted_value"]).pow(2)
    assert metrics["loss"] == pytest.approx(errors.mean(), rel=1e-3)
    assert metrics["spearman"] > 0.2
    classifier = pipeline("text-classification", str(folder), function_to_apply="none")
    scores = [one["score"] for one in classifier(test["text"].tolist(), truncation=True)]
    assert np.allclose(scores, test["predicted_value"], rtol=1e-4, atol=1e-4)
    assert "Probabilities" not in (folder / "README.md").read_text()
