"""Who goes on, who wins, and which texts a run of a race reads."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartan.compare.decision import Predictions, going_on, joined, winner
from tartan.compare.folds import ALL, fold_of_rows, labelled_rows, load_task, write_folds
from tartan.data.task_kind import TaskKind
from tartan.errors import UserError
from tartan.evaluation.metrics import NAMED

LABELS = np.arange(200) % 2


def predictions(**right):
    """Ways by the share of examples that each predicts rightly, on the same 200 examples."""
    order = np.random.default_rng(3).permutation(len(LABELS))
    probabilities = {}
    for method, share in right.items():
        wrong = np.isin(np.arange(len(LABELS)), order[round(share * len(LABELS)) :])
        probabilities[method] = np.eye(2, dtype=np.float32)[np.where(wrong, 1 - LABELS, LABELS)]
    return Predictions(LABELS, probabilities, NAMED["accuracy"](num_classes=2))


def test_scores_and_differences_are_those_of_the_metric():
    found = predictions(finetune=0.5, tapt=0.8)
    assert found.scores == pytest.approx({"finetune": 0.5, "tapt": 0.8})
    difference = found.difference("tapt", "finetune")
    assert difference.value == pytest.approx(0.3)
    # 0.3 of the examples differ, all in the same direction: a binomial share
    assert difference.error == pytest.approx(np.sqrt(0.3 * 0.7 / 200), rel=0.15)
    assert difference.low < 0.3 < difference.high
    assert found.difference("finetune", "finetune")[:2] == (0, 0)


def test_the_baseline_goes_on_and_what_is_far_behind_does_not():
    found = predictions(finetune=0.5, tapt=0.9, mt_tartan=0.6)
    assert going_on(found, 1, "finetune") == ["finetune", "tapt"]


def test_what_is_within_the_noise_goes_on_until_two_are_left():
    found = predictions(finetune=0.80, tapt=0.82, dapt_tapt=0.81, mt_tartan=0.805)
    assert going_on(found, 1, "finetune") == ["finetune", "tapt", "dapt_tapt"]
    assert going_on(found, 2, "finetune") == ["finetune", "tapt"]


def test_the_simplest_within_one_error_of_the_best_wins():
    assert winner(predictions(finetune=0.80, tapt=0.803)) == "finetune"
    assert winner(predictions(finetune=0.7, tapt=0.803)) == "tapt"
    assert winner(predictions(finetune=0.7, tapt=0.6)) == "finetune"


def test_folds_are_joined_by_example():
    part = predictions(finetune=0.5, tapt=0.8)
    both = joined([part, predictions(finetune=0.9, tapt=0.4)], ["finetune"])
    assert both.scores == pytest.approx({"finetune": 0.7})


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab")), min_size=40, max_size=80))
def test_folds_hold_every_label_and_share_no_text(pairs):
    rows = [{"text": f"text {text}", "label": label} for text, label in pairs]
    rows += [{"text": f"more {i}", "label": "ab"[i % 2]} for i in range(20)]
    fold_of = fold_of_rows(rows, 4, TaskKind())
    places = {}
    for row, fold in zip(rows, fold_of.tolist(), strict=True):
        assert places.setdefault(row["text"], fold) == fold
    for fold in range(4):
        assert {row["label"] for row, f in zip(rows, fold_of, strict=True) if f == fold} == {*"ab"}


def test_texts_of_a_label_with_fewer_texts_than_folds_are_in_no_fold():
    rows = [{"text": str(i), "label": "ab"[i % 2]} for i in range(20)]
    rows += [{"text": text, "label": "rare"} for text in ("x", "x", "y", "3")]
    folds = fold_of_rows(rows, 4, TaskKind()).tolist()
    assert {row["text"] for row, fold in zip(rows, folds, strict=True) if fold < 0} == {*"xy3"}


def test_folds_of_one_label_alone_are_refused():
    rows = [{"text": str(i), "label": "often" if i else "once"} for i in range(20)]
    with pytest.raises(UserError, match="once"):
        fold_of_rows(rows, 2, TaskKind())


def test_no_run_reads_a_held_out_text_and_no_label_is_lost(tmp_path):
    train = tmp_path / "train.csv"
    lines = [f"text number {i},{'ab'[i % 2]}" for i in range(20)]
    lines += [f"unlabelled {i}," for i in range(5)] + ["text number 3,"]
    train.write_text("text,label\n" + "\n".join(lines) + "\n")
    task = load_task(["task=files", f"task.train={train}", "task.empty_label=unlabelled"])
    rows = labelled_rows(task)
    assert len(rows) == 20
    write_folds(task, rows, fold_of_rows(rows, 4, TaskKind()), tmp_path / "folds")

    def read(name):
        return [json.loads(line) for line in (tmp_path / "folds" / name).read_text().splitlines()]

    assert {row["text"] for row in read(ALL)} == {line.partition(",")[0] for line in lines}
    held_out = [read(f"{fold}/held_out.jsonl") for fold in range(4)]
    assert sorted(row["text"] for part in held_out for row in part) == sorted(
        row["text"] for row in rows
    )
    for fold, part in enumerate(held_out):
        texts = {row["text"] for row in part}
        assert texts.isdisjoint(row["text"] for row in read(f"{fold}/train.jsonl"))
    for one, other in pairwise(held_out):
        assert {row["text"] for row in one}.isdisjoint(row["text"] for row in other)
