"""Metrics that are named on the command line, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from torchmetrics import Metric
from torchmetrics.classification import (
    MulticlassCalibrationError,
    MulticlassEER,
    MulticlassJaccardIndex,
)

from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.evaluation.named_metrics import (
    NAMED,
    check_higher_is_better,
    check_metric,
    named_metric,
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


@pytest.mark.parametrize("name", NAMED)
def test_a_named_metric_is_that_of_scikit_learn_whole_and_unseen(name):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 4, (120,), generator=generator)
    logits = 3 * torch.randn(120, 4, generator=generator)
    logits[torch.arange(120), labels] += 2
    unseen = torch.rand(120, generator=generator) < 0.6
    both = {name: named_metric(name, 4), "macro_f1": named_metric("macro_f1", 4)}
    metrics = EndTaskMetrics(both, name, 4)
    for part in torch.arange(120).split(17):
        metrics.update(logits[part], labels[part], unseen[part])
    values = metrics.compute(any_unseen=True)
    assert set(values) == {name, "macro_f1", f"{name}_unseen", "macro_f1_unseen"}
    for chosen, suffix in ((torch.ones(120, dtype=torch.bool), ""), (unseen, "_unseen")):
        y, scores = labels[chosen].numpy(), logits[chosen].softmax(1).numpy()
        wanted = EXPECTED[name](y, scores.argmax(1), scores)
        assert float(values[f"{name}{suffix}"]) == pytest.approx(wanted, abs=1e-5)
    metrics.reset()
    metrics.update(logits[:5], logits[:5].argmax(1), unseen[:5])
    assert float(metrics.compute(False)["macro_f1"]) == 1


def drawn(labels, seed=0, classes=4):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(len(labels), classes, generator=generator)
    logits[torch.arange(len(labels)), labels] += 2
    return logits.softmax(1)


def value_of(metric: Metric, scores, labels, by_label=False):
    metric.update(scores.argmax(1) if by_label else scores, labels)
    return metric.compute()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("absent", [0, 1, 3])
def test_a_label_that_is_absent_from_a_split_has_no_part_in_a_mean_over_labels(absent):
    present = [label for label in range(4) if label != absent]
    labels = torch.tensor(present)[torch.arange(60) % 3]
    scores = drawn(labels)
    assert absent in scores.argmax(1)  # predicted, but absent
    y, s = labels.numpy(), scores.numpy()
    found = {
        name: float(value_of(named_metric(name, 4), scores, labels, name == "balanced_accuracy"))
        for name in ("balanced_accuracy", "auroc", "average_precision")
    }
    alone = np.eye(4)[y][:, present]
    assert found == pytest.approx(
        {
            "balanced_accuracy": sk.recall_score(y, s.argmax(1), labels=present, average="macro"),
            "auroc": sk.roc_auc_score(alone, s[:, present], average="macro"),
            "average_precision": sk.average_precision_score(alone, s[:, present], average="macro"),
        },
        abs=1e-6,
    )


def test_only_a_known_metric_whose_higher_values_are_better_chooses_the_checkpoint():
    check_metric("mine", ["mine"])
    with pytest.raises(UserError, match=r"^task\.metric=f1 is not one .* macro_f1, .* mine, "):
        check_metric("f1", ["mine"])
    check_higher_is_better("iou", MulticlassJaccardIndex(num_classes=3))
    for kind in (MulticlassCalibrationError, MulticlassEER):
        with pytest.raises(UserError, match=f"{kind.__name__} are not known to be better"):
            check_higher_is_better("x", kind(num_classes=3))
