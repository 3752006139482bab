"""Computes metrics at the end of an evaluation, from the scores of all its examples."""

import warnings
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.utilities import dim_zero_cat


class Kept(Metric):
    """The scores and codes of all examples, on all processes, `(examples, labels)` both."""

    scores: list[Tensor]
    codes: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.add_state("scores", [], dist_reduce_fx="cat")
        self.add_state("codes", [], dist_reduce_fx="cat")

    def update(self, scores: Tensor, codes: Tensor) -> None:
        self.scores.append(scores)
        self.codes.append(codes)

    def compute(self) -> tuple[Tensor, Tensor]:
        return dim_zero_cat(self.scores), dim_zero_cat(self.codes)


class KeptPart(nn.Module):
    """Metrics of a part of a split: `scores_of` logits are kept, and metrics get them as `shown`.

    `dtype` is that of the codes.
    """

    counts = None  # no confusion of labels

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        labels: int,
        scores_of: Callable[[Tensor], Tensor],
        shown: Callable[[Tensor], Tensor],
        dtype: torch.dtype = torch.int64,
    ) -> None:
        super().__init__()
        self._names, self._labels, self._dtype = list(metrics), labels, dtype
        self._scores_of, self._shown = scores_of, shown
        self.kept = Kept()
        self.metrics = MetricCollection(dict(metrics), compute_groups=False).clone()
        for metric in self.metrics.values():  # which get the examples of all processes
            metric.distributed_available_fn = lambda: False

    def update(self, logits: Tensor, codes: Tensor) -> None:
        self.kept.update(self._scores_of(logits), codes.to(self._dtype))

    def every(self) -> tuple[Tensor, Tensor]:
        """Return the scores and codes of all examples on all processes."""
        if not self.kept.scores:  # this process has none, and all are joined
            empty = torch.zeros(0, self._labels, device=self.kept.device)
            self.kept.update(empty, empty.to(self._dtype))
        both: tuple[Tensor, Tensor] = self.kept.compute()
        return both

    def compute(self) -> dict[str, Tensor]:
        scores, codes = self.every()
        with warnings.catch_warnings():  # of labels that no example has, and constant scores
            warnings.simplefilter("ignore", UserWarning)
            self.metrics.reset()
            self.metrics.update(self._shown(scores), codes)
            values = self.metrics.compute()
        return {name: values[name] for name in self._names}
