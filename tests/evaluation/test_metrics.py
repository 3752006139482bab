"""Metrics on the whole split and on its unseen part, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, f1_score
from torch import distributed
from torch.multiprocessing import start_processes
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassCalibrationError,
    MulticlassF1Score,
    MulticlassHingeLoss,
)

from tartan.evaluation.metrics import EndTaskMetrics
from tartan.evaluation.named_metrics import NAMED

AVERAGES = ("macro", "micro", "weighted")


def metrics_of(classes):
    metrics = {
        f"{average}_f1": MulticlassF1Score(num_classes=classes, average=average)
        for average in AVERAGES
    }
    return EndTaskMetrics(metrics, "macro_f1", classes)


def update(metrics, predictions, labels, unseen, classes, batch=7):
    for start in range(0, len(labels), batch):
        part = slice(start, start + batch)
        logits = torch.nn.functional.one_hot(torch.tensor(predictions[part]), classes) * 3.0
        metrics.update(logits - 1, torch.tensor(labels[part]), torch.tensor(unseen[part]))


def expected(predictions, labels, suffix=""):
    return {
        f"{average}_f1{suffix}": f1_score(labels, predictions, average=average, zero_division=0)
        for average in AVERAGES
    }


def check(found, wanted):
    assert {name: float(value) for name, value in found.items()} == pytest.approx(wanted, abs=1e-6)


def draw(seed, count=60, classes=5, labelled=None):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, labelled or classes, count)
    right = rng.random(count) < 0.5
    predictions = np.where(right, labels, rng.integers(0, labelled or classes, count))
    return predictions, labels, rng.random(count) < 0.3


@pytest.mark.parametrize("seed", range(5))
def test_every_average_is_that_of_scikit_learn_whole_and_unseen(seed):
    predictions, labels, unseen = draw(seed)
    metrics = metrics_of(5)
    update(metrics, predictions, labels, unseen, 5)
    whole = expected(predictions, labels)
    check(metrics.compute(True), whole | expected(predictions[unseen], labels[unseen], "_unseen"))
    check(metrics.compute(False), whole)


def test_the_confusion_is_that_of_scikit_learn_and_outlives_the_reset():
    predictions, labels, unseen = draw(7)
    metrics = metrics_of(5)
    update(metrics, *draw(8), 5)
    metrics.compute(True)
    metrics.reset()
    update(metrics, predictions, labels, unseen, 5)
    metrics.compute(True)
    metrics.reset()
    parts = {"whole": slice(None), "unseen": unseen}
    for part, chosen in parts.items():
        wanted = confusion_matrix(labels[chosen], predictions[chosen], labels=range(5))
        assert metrics.confusion[part].tolist() == wanted.tolist()
    update(metrics, predictions, labels, np.zeros(60, dtype=bool), 5)
    metrics.compute(False)
    assert set(metrics.confusion) == {"whole"}


def all_metrics(classes):
    """Every kind of metric, those of labels, of probabilities and of several guesses."""
    metrics = {name: kind(num_classes=classes) for name, kind in NAMED.items()}
    metrics["calibration"] = MulticlassCalibrationError(num_classes=classes)
    metrics["hinge"] = MulticlassHingeLoss(num_classes=classes)
    metrics["top2"] = MulticlassAccuracy(num_classes=classes, top_k=2)
    return EndTaskMetrics(metrics, "macro_f1", classes)


def batch_of(count=12, classes=3):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(count, classes, generator=generator)
    return logits, torch.arange(count) % classes, torch.arange(count) >= count // 2


def in_one_of_two(rank, folder):
    distributed.init_process_group("gloo", f"file://{folder}/meeting", world_size=2, rank=rank)
    logits, labels, unseen = batch_of()
    for counts in (6, 12):  # the second process has unseen examples alone, or none at all
        part = slice(0, counts) if rank == 0 else slice(counts, 12)
        metrics = all_metrics(3)
        if len(labels[part]):
            metrics.update(logits[part], labels[part], unseen[part])
        found = {name: float(value) for name, value in metrics.compute(True).items()}
        torch.save(found, f"{folder}/{counts}-{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")
def test_a_process_without_unseen_examples_or_without_any_computes_what_all_do(tmp_path):
    start_processes(in_one_of_two, args=(str(tmp_path),), nprocs=2, start_method="spawn")
    expected = all_metrics(3)
    expected.update(*batch_of())
    wanted = {name: float(value) for name, value in expected.compute(True).items()}
    for counts in (6, 12):
        for rank in range(2):
            assert torch.load(tmp_path / f"{counts}-{rank}.pt") == pytest.approx(wanted, abs=1e-6)
