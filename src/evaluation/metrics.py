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
        self._counts = nn.ModuleDict(
            {
                part: MulticlassConfusionMatrix(classes, validate_args=False)
                for part in ("whole", "unseen")
            }
        )
        self.confusion: dict[str, Tensor] = {}

    def update(self, logits: Tensor, labels: Tensor, unseen: Tensor) -> None:
        """Count a batch: `logits` `(n, classes)`, `labels` `(n,)`, `unseen` `(n,)` booleans."""
        predictions = logits.argmax(dim=1)
        self.whole.update(predictions, labels)
        self._counts["whole"].update(predictions, labels)
        if bool(unseen.any()):
            self.unseen.update(predictions[unseen], labels[unseen])
            self._counts["unseen"].update(predictions[unseen], labels[unseen])

    def compute(self, any_unseen: bool) -> dict[str, Tensor]:
        """All metrics by name; those of the unseen part end in `_unseen`. Sets `confusion`."""
        values = dict(self.whole.compute())
        if any_unseen:
            values |= self.unseen.compute()
        parts = ("whole", "unseen") if any_unseen else ("whole",)
        self.confusion = {part: self._counts[part].compute() for part in parts}
        return values

    def reset(self) -> None:
        """Start a new evaluation."""
        self.whole.reset()
        self.unseen.reset()
        for counts in self._counts.values():
            counts.reset()
