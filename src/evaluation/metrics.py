"""The end task's metrics, on a whole split and on its examples whose text is not in train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import MulticlassConfusionMatrix


@dataclass(frozen=True)
class SplitScores:
    """What an evaluation found.

    Attributes:
        metrics: by name; those of the unseen part end in `_unseen`.
        confusion: examples by part (`whole`, and `unseen` where there are such), label (rows) and
            prediction (columns).
    """

    metrics: dict[str, float]
    confusion: dict[str, list[list[int]]] = field(default_factory=dict)


class EndTaskMetrics(nn.Module):
    """Torchmetrics classification metrics, each kept twice: whole and unseen.

    Args:
        metrics: metrics by name, as built for the task's number of labels.
        monitor: the name of the one by which checkpoints are chosen.
        classes: the number of labels.

    Attributes:
        confusion: of the last evaluation, by part: `(classes, classes)` examples, labels in rows
            and predictions in columns.
    """

    def __init__(self, metrics: Mapping[str, Metric], monitor: str, classes: int) -> None:
        super().__init__()
        self.monitor = monitor
        whole = MetricCollection(dict(metrics))
        self.whole = whole.clone()
        self.unseen = whole.clone(postfix="_unseen")
        self.whole_counts = MulticlassConfusionMatrix(classes, validate_args=False)
        self.unseen_counts = self.whole_counts.clone()
        self.confusion: dict[str, Tensor] = {}

    def update(self, logits: Tensor, labels: Tensor, unseen: Tensor) -> None:
        """Count a batch: `logits` `(n, classes)`, `labels` `(n,)`, `unseen` `(n,)` booleans."""
        predictions = logits.argmax(dim=1)
        self.whole.update(predictions, labels)
        self.whole_counts.update(predictions, labels)
        if bool(unseen.any()):
            self.unseen.update(predictions[unseen], labels[unseen])
            self.unseen_counts.update(predictions[unseen], labels[unseen])

    def compute(self, any_unseen: bool) -> dict[str, Tensor]:
        """All metrics by name; those of the unseen part end in `_unseen`. Sets `confusion`."""
        values = dict(self.whole.compute())
        self.confusion = {"whole": self.whole_counts.compute()}
        if any_unseen:
            values |= self.unseen.compute()
            self.confusion["unseen"] = self.unseen_counts.compute()
        return values

    def reset(self) -> None:
        """Start a new evaluation."""
        self.whole.reset()
        self.unseen.reset()
        self.whole_counts.reset()
        self.unseen_counts.reset()
