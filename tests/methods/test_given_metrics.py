"""Metrics of a program's own are computed, or refused in one line before any training."""

from __future__ import annotations

import pytest
import torch
from torchmetrics import Metric

from tartan.errors import UserError
from tartan.methods import FineTuning
from tests.methods.lightning import fitted, toy_data

KINDS = "torchmetrics.classification."


class OfProbabilities(Metric):
    """A metric that takes probabilities, where predicted labels are given."""

    higher_is_better = True

    def __init__(self, num_classes):
        super().__init__()
        self.add_state("total", torch.zeros(()), dist_reduce_fx="sum")

    def update(self, probabilities, labels):
        self.total += probabilities[:, 0].sum()

    def compute(self):
        return self.total


class OfPairs(OfProbabilities):
    """A metric that takes as many examples as there are labels."""

    def update(self, predictions, labels):
        self.total += (predictions * torch.arange(3.0)).sum()


def given(kind, **arguments):
    return {"own": {"_target_": kind, **arguments}}


@pytest.mark.parametrize(
    ("metrics", "line"),
    [
        (
            given(KINDS + "BinaryF1Score"),
            r"metrics\['own'\]: .*BinaryF1Score\(num_classes=3, \.\.\.\) cannot be comp",
        ),
        (given("torchmetrics.Accuracy"), r"no metric of .*mean .*\.MulticlassAccuracy\?$"),
        (given(KINDS + "MulticlasF1Score"), r"no metric of .*mean .*\.MulticlassF1Score\?"),
        (
            given("torchmetrics.text.BLEUScore"),
            r"BLEUScore is no metric of torchmetrics\.classification$",
        ),
        (given(f"{__name__}.OfPairs"), r"OfPairs\(num_classes=3, \.\.\.\) cannot be computed: The"),
        (given(KINDS + "MulticlassF1Score", average="none"), "returns 3 values; give one that"),
        (
            given(f"{__name__}.OfProbabilities"),
            r"OfProbabilities\(.*\) cannot be computed: too many ind",
        ),
        ({"loss": {"_target_": KINDS + "MulticlassAccuracy"}}, "the mean loss is logged as `loss`"),
    ],
)
def test_what_cannot_be_computed_is_refused(metrics, line, data_dir, cache_dir):
    with pytest.raises(UserError, match=line):
        FineTuning.for_data(toy_data(data_dir, cache_dir), lr=1e-3, metrics=metrics)


def test_a_metric_may_be_named_by_the_module_that_defines_it(data_dir, cache_dir):
    metrics = given(KINDS + "accuracy.MulticlassAccuracy")
    module = FineTuning.for_data(toy_data(data_dir, cache_dir), lr=1e-3, metrics=metrics)
    assert "own" in module.metrics.modes


def test_trying_a_metric_leaves_nothing_in_it(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    top = given(KINDS + "MulticlassAccuracy", top_k=3, average="micro")
    module = FineTuning.for_data(data, lr=1e-3, metrics=top)
    assert module.metrics.modes == dict.fromkeys(
        ("macro_f1", "micro_f1", "weighted_f1", "own"), "max"
    )
    assert all(int(m.tp.sum()) == 0 for m in module.metrics.whole.by_probability.values())
    fitted(module, data, tmp_path, max_steps=1)
