"""The end task's metrics, on a whole split and on its examples whose text is not in train."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection


class EndTaskMetrics(nn.Module):
    """Torchmetrics classification metrics, each kept twice: whole and unseen.

    Args:
        metrics: metrics by name, as built for the task's number of labels.
        monitor: the name of the one by which checkpoints are chosen.
    """

    def __init__(self, metrics: Mapping[str, Metric], monitor: str) -> None:
        super().__init__()
        self.monitor = monitor
        whole = MetricCollection(dict(metrics))
        self.whole = whole.clone()
        self.unseen = whole.clone(postfix="_unseen")

    def update(self, logits: Tensor, labels: Tensor, unseen: Tensor) -> None:
        """Count a batch: `logits` `(n, classes)`, `labels` `(n,)`, `unseen` `(n,)` booleans."""
        predictions = logits.argmax(dim=1)
        self.whole.update(predictions, labels)
        if bool(unseen.any()):
            self.unseen.update(predictions[unseen], labels[unseen])

    def compute(self, any_unseen: bool) -> dict[str, Tensor]:
        """All metrics by name; those of the unseen part end in `_unseen`."""
        values = dict(self.whole.compute())
        if any_unseen:
            values |= self.unseen.compute()
        return values

    def reset(self) -> None:
        """Start a new evaluation."""
        self.whole.reset()
        self.unseen.reset()
