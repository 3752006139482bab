"""Scores and intervals from a confusion matrix: those of a bootstrap over examples."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import f1_score
from torchmetrics.functional.classification import multiclass_f1_score

from tartan.evaluation.confusion_scores import bootstrap_interval, scores_by_class

COUNTS = [[30, 4, 1], [6, 20, 3], [2, 2, 5]]
EMPTY_CLASS = [[9, 3, 0], [2, 6, 0], [0, 0, 0]]


def examples(counts):
    """Labels and predictions."""
    pairs = [(i, j) for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
    return np.array(pairs).T


def f1(counts, average):
    labels, predictions = examples(counts)
    return float(
        multiclass_f1_score(
            torch.from_numpy(predictions), torch.from_numpy(labels), len(counts), average
        )
    )


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
@pytest.mark.parametrize("counts", [COUNTS, EMPTY_CLASS])
def test_the_interval_is_that_of_resampled_examples(average, counts):
    value = f1(counts, average)
    found = bootstrap_interval(f"{average}_f1", value, counts)
    labels, predictions = examples(counts)

    def statistic(labels, predictions):
        drawn = np.zeros_like(np.array(counts))
        np.add.at(drawn, (labels, predictions), 1)
        return f1(drawn.tolist(), average)

    slow = stats.bootstrap(
        (labels, predictions), statistic, paired=True, vectorized=False, n_resamples=400,
        method="percentile", rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert found.low < value < found.high
    assert (found.low, found.high) == pytest.approx(tuple(slow), abs=0.051)  # one of 20 examples


def test_many_classes_take_little_memory():
    right = np.eye(3000, dtype=np.int64)
    right[0, 1] = 3
    tracemalloc.start()
    found = bootstrap_interval("accuracy", 3000 / 3003, right.tolist())
    assert found.low < 3000 / 3003 <= found.high == 1
    assert tracemalloc.get_traced_memory()[1] < 2**29
    tracemalloc.stop()


def test_more_examples_are_surer():
    few = bootstrap_interval("macro_f1", f1(COUNTS, "macro"), COUNTS)
    counts = (100 * np.array(COUNTS)).tolist()
    many = bootstrap_interval("macro_f1", f1(COUNTS, "macro"), counts)
    assert many.high - many.low == pytest.approx((few.high - few.low) / 10, rel=0.15)


def test_the_interval_is_the_same_every_time():
    value = f1(COUNTS, "macro")
    assert bootstrap_interval("macro_f1", value, COUNTS) == bootstrap_interval(
        "macro_f1", value, COUNTS
    )


def test_no_interval_for_what_the_matrix_does_not_give():
    value = f1(COUNTS, "macro")
    assert bootstrap_interval("calibration_error", value, COUNTS) is None
    assert bootstrap_interval("macro_f1", value + 0.01, COUNTS) is None
    assert bootstrap_interval("macro_f1", 0.0, [[0, 0], [0, 0]]) is None


def test_scores_of_each_class():
    scores = scores_by_class([[3, 1, 0], [2, 4, 0], [0, 0, 0]])
    assert [one.support for one in scores] == [4, 6, 0]
    assert scores[0].precision == pytest.approx(3 / 5)
    assert scores[0].recall == pytest.approx(3 / 4)
    assert scores[0].f1 == pytest.approx(2 / 3)
    assert (scores[2].precision, scores[2].recall, scores[2].f1) == (None, None, None)


def test_f1_of_each_class_is_scikit_learns():
    rng = np.random.default_rng(0)
    labels, predictions = rng.integers(0, 4, (2, 200))
    counts = np.zeros((5, 5), dtype=np.int64)  # of the fifth there is none
    np.add.at(counts, (labels, predictions), 1)
    expected = f1_score(labels, predictions, labels=range(5), average=None, zero_division=0)
    assert [one.f1 or 0 for one in scores_by_class(counts.tolist())] == pytest.approx(expected)
