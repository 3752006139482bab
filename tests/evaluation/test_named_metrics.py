"""Metrics that are named on the command line, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from src.errors import UserError
from src.evaluation.metrics import EndTaskMetrics
from src.evaluation.named_metrics import NAMED, check_metric, named_metric


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


def test_an_unknown_metric_lists_the_known_ones_and_the_configs_own():
    check_metric("accuracy", [])
    check_metric("mine", ["mine"])
    with pytest.raises(UserError, match=r"^task\.metric=f1 is not one .* macro_f1, .* mine, "):
        check_metric("f1", ["mine"])
