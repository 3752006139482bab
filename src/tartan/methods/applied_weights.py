"""Keeps the task weights of the last step that was not skipped."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tartan.core.step import StepRecord


class AppliedWeights:
    """Keeps the weights of all tasks from step to step, without waiting for the device.

    Args:
        names: names of the tasks, in order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._now: Tensor | None = None  # NaN as long as all steps were skipped

    def follow(self, record: StepRecord, overall: Tensor | None, finite: Tensor) -> None:
        """Take over a step's weights, unless the step was skipped.

        Args:
            record: the step's record.
            overall: weights of all tasks, `(tasks,)`, where the weighting gives them; otherwise a
                task that the step has not sampled keeps its last weight.
            finite: a scalar boolean; False where the step was skipped.
        """
        now = record.weights if overall is None else overall
        before = None if self._now is None else self._now.to(now)
        if overall is None and len(record.tasks) < len(self._names):
            places = [self._names.index(name) for name in record.tasks]
            last = now.new_zeros(len(self._names)) if before is None else before.nan_to_num()
            now = last.index_copy(0, torch.tensor(places, device=now.device), now)
        unknown = torch.full_like(now, math.nan)
        self._now = torch.where(finite, now, unknown if before is None else before)

    def by_task(self) -> dict[str, float]:
        """Return the weights by task; empty before the first step that was not skipped."""
        values = [] if self._now is None else self._now.tolist()
        return {} if any(map(math.isnan, values)) else dict(zip(self._names, values, strict=False))

    def restore(self, values: Sequence[float]) -> None:
        """Restore the weights of a checkpoint."""
        self._now = torch.tensor(values, dtype=torch.float64) if values else None
