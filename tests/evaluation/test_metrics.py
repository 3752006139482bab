"""Metrics on the whole split and on its unseen part, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from torch import distributed
from torch.multiprocessing import start_processes
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassCalibrationError,
    MulticlassEER,
    MulticlassHingeLoss,
    MulticlassJaccardIndex,
)

from tartan.errors import UserError
from tartan.evaluation.metrics import (
    NAMED,
    EndTaskMetrics,
    check_higher_is_better,
    check_metric,
)


def averaged(function):
    return {
        average: lambda y, p, s, a=average: function(y, p, average=a, zero_division=0)
        for average in ("macro", "micro", "weighted")
    }


def specificity(y, p, s):
    counts = sk.multilabel_confusion_matrix(y, p)
    return float(np.mean(counts[:, 0, 0] / counts[:, 0].sum(axis=1)))


EXPECTED = {
    "accuracy": lambda y, p, s: sk.accuracy_score(y, p),
    "balanced_accuracy": lambda y, p, s: sk.balanced_accuracy_score(y, p),
    **{f"{a}_f1": f for a, f in averaged(sk.f1_score).items()},
    **{f"{a}_precision": f for a, f in averaged(sk.precision_score).items()},
    **{f"{a}_recall": f for a, f in averaged(sk.recall_score).items()},
    "specificity": specificity,
    "mcc": lambda y, p, s: sk.matthews_corrcoef(y, p),
    "cohen_kappa": lambda y, p, s: sk.cohen_kappa_score(y, p),
    "auroc": lambda y, p, s: sk.roc_auc_score(np.eye(4)[y], s, average="macro"),
    "average_precision": lambda y, p, s: sk.average_precision_score(
        np.eye(4)[y], s, average="macro"
    ),
}


def drawn(labels, seed=0):
    """Random logits of four classes that mostly favour the label."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(len(labels), 4, generator=generator)
    logits[torch.arange(len(labels)), labels] += 2
    return logits


@pytest.mark.parametrize("name", NAMED)
def test_a_metric_is_that_of_scikit_learn_whole_and_unseen(name):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 4, (120,), generator=generator)
    logits, unseen = drawn(labels), torch.rand(120, generator=generator) < 0.6
    both = {name: NAMED[name](num_classes=4), "macro_f1": NAMED["macro_f1"](num_classes=4)}
    metrics = EndTaskMetrics(both, name, 4)
    metrics.update(drawn(labels[:9], 1), labels[:9])
    metrics.reset()
    for batch in torch.arange(120).split(17):
        metrics.update(logits[batch], labels[batch], unseen[batch])
    values = metrics.compute(any_unseen=True)
    assert set(values) == {name, "macro_f1", f"{name}_unseen", "macro_f1_unseen"}
    parts = {"whole": torch.ones(120, dtype=torch.bool), "unseen": unseen}
    for part, chosen in parts.items():
        y, scores = labels[chosen].numpy(), logits[chosen].softmax(1).numpy()
        wanted = EXPECTED[name](y, scores.argmax(1), scores)
        found = values[name if part == "whole" else f"{name}_unseen"]
        assert float(found) == pytest.approx(wanted, abs=1e-5)
        confusion = sk.confusion_matrix(y, scores.argmax(1), labels=range(4))
        assert metrics.confusion[part].tolist() == confusion.tolist()
    assert set(metrics.compute(any_unseen=False)) == {name, "macro_f1"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("absent", [0, 1, 3])
def test_a_label_that_is_absent_from_a_split_has_no_part_in_a_mean_over_labels(absent):
    present = [label for label in range(4) if label != absent]
    labels = torch.tensor(present)[torch.arange(60) % 3]
    scores = drawn(labels).softmax(1)
    assert absent in scores.argmax(1)  # predicted, but absent
    y, s = labels.numpy(), scores.numpy()
    alone = np.eye(4)[y][:, present]
    expected = {
        "balanced_accuracy": sk.recall_score(y, s.argmax(1), labels=present, average="macro"),
        "auroc": sk.roc_auc_score(alone, s[:, present], average="macro"),
        "average_precision": sk.average_precision_score(alone, s[:, present], average="macro"),
    }
    for name, wanted in expected.items():
        metric = NAMED[name](num_classes=4)
        metric.update(scores.argmax(1) if name == "balanced_accuracy" else scores, labels)
        assert float(metric.compute()) == pytest.approx(wanted, abs=1e-6)


def test_only_a_known_metric_whose_higher_values_are_better_chooses_the_checkpoint():
    check_metric("mine", ["mine"])
    with pytest.raises(UserError, match=r"^task\.metric=f1 is not one .* macro_f1, .* mine, "):
        check_metric("f1", ["mine"])
    check_higher_is_better("iou", MulticlassJaccardIndex(num_classes=3))
    for kind in (MulticlassCalibrationError, MulticlassEER):
        with pytest.raises(UserError, match=f"{kind.__name__} are not known to be better"):
            check_higher_is_better("x", kind(num_classes=3))


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
