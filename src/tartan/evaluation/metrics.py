"""Computes the end task's metrics on all examples of a split, and on its unseen ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import (
    MulticlassCalibrationError,
    MulticlassConfusionMatrix,
    MulticlassHingeLoss,
    MulticlassPrecisionRecallCurve,
)

_OF_PROBABILITIES = (
    MulticlassPrecisionRecallCurve,
    MulticlassCalibrationError,
    MulticlassHingeLoss,
)


@dataclass(frozen=True)
class SplitScores:
    """The scores of a split.

    Attributes:
        metrics: values by name; names of those on unseen examples end in `_unseen`.
        confusion: number of examples by part (`whole`, and `unseen` if there are such), label
            (rows) and prediction (columns).
    """

    metrics: dict[str, float]
    confusion: dict[str, list[list[int]]] = field(default_factory=dict)


class EndTaskMetrics(nn.Module):
    """Torchmetrics' classification metrics, computed twice: on all and on unseen examples.

    Args:
        metrics: metrics by name, built for the task's number of labels.
        monitor: name of the metric by which checkpoints are chosen.
        classes: number of labels.

    Attributes:
        names: the metrics' names.
        saw_unseen: whether this process has counted an unseen example.
        confusion: confusion matrices of the last evaluation by part, `(classes, classes)`, labels
            in rows and predictions in columns.
    """

    def __init__(self, metrics: Mapping[str, Metric], monitor: str, classes: int) -> None:
        super().__init__()
        self.monitor, self.names = monitor, list(metrics)
        self.whole, self.unseen = _Part(metrics, classes), _Part(metrics, classes)
        self.saw_unseen = False
        self.confusion: dict[str, Tensor] = {}

    @property
    def modes(self) -> dict[str, str]:
        """Return the direction, `max` or `min`, of each metric that has one, by name."""
        metrics = {**self.whole.by_prediction, **self.whole.by_probability}
        better = {name: metric.higher_is_better for name, metric in metrics.items()}
        return {n: "max" if high else "min" for n, high in better.items() if high is not None}

    def update(self, logits: Tensor, labels: Tensor, unseen: Tensor | None = None) -> None:
        """Count a batch of logits `(n, classes)` and label indices `(n,)`.

        `unseen` says whether each example is absent from train, bool `(n,)`; where it is None, none
        counts as unseen.
        """
        self.whole.update(logits, labels)
        if unseen is not None and bool(unseen.any()):
            self.saw_unseen = True
            self.unseen.update(logits[unseen], labels[unseen])

    def compute(self, any_unseen: bool) -> dict[str, Tensor]:
        """Return all metrics by name, and set `confusion`.

        `any_unseen` says whether any process `saw_unseen`: all have to compute the same metrics.
        """
        values = self.whole.compute()
        self.confusion = {"whole": self.whole.counts.compute()}
        if any_unseen:
            values |= {f"{name}_unseen": value for name, value in self.unseen.compute().items()}
            self.confusion["unseen"] = self.unseen.counts.compute()
        return values

    def reset(self) -> None:
        """Start a new evaluation."""
        self.saw_unseen = False
        for module in self.modules():
            if isinstance(module, Metric):
                module.reset()


class _Part(nn.Module):
    """The metrics of predicted labels, those of probabilities, and the confusion matrix."""

    def __init__(self, metrics: Mapping[str, Metric], classes: int) -> None:
        super().__init__()
        self._names, self._classes = list(metrics), classes
        ranking = {name: metric for name, metric in metrics.items() if _ranks(metric)}
        counting = {name: metric for name, metric in metrics.items() if name not in ranking}
        # groups are found by equal states after one batch, and such metrics may differ
        self.by_prediction = MetricCollection(counting, compute_groups=False).clone()
        self.by_probability = MetricCollection(ranking, compute_groups=False).clone()
        self.counts = MulticlassConfusionMatrix(classes, validate_args=False)

    def update(self, logits: Tensor, labels: Tensor) -> None:
        predictions = logits.argmax(dim=1)
        self.by_prediction.update(predictions, labels)
        if len(self.by_probability):
            self.by_probability.update(logits.softmax(dim=1), labels)
        self.counts.update(predictions, labels)

    def compute(self) -> dict[str, Tensor]:
        for metric in self.by_probability.values():
            # of several processes one may have no example, and torchmetrics, which joins the lists
            # of all, does not know what the rows of an empty one would be
            keeps = isinstance(metric, MulticlassPrecisionRecallCurve) and metric.thresholds is None
            if keeps and not metric.preds:
                metric.preds.append(torch.zeros(0, self._classes, device=metric.device))
                metric.target.append(torch.zeros(0, dtype=torch.int64, device=metric.device))
        values = {**self.by_prediction.compute(), **self.by_probability.compute()}
        return {name: values[name] for name in self._names}


def _ranks(metric: Metric) -> bool:
    """Return whether a metric needs more than the predicted label: a curve, or several guesses."""
    return isinstance(metric, _OF_PROBABILITIES) or (getattr(metric, "top_k", 1) or 1) > 1
