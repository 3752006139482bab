"""Keeps the task weights of the last step that was not skipped."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from src.core.step import StepRecord


class AppliedWeights:
    """Keeps the weights of all tasks from step to step, without waiting for the device.

    Args:
        names: names of the tasks, in order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._now: Tensor | None = None
        self._known: list[float] = []

    def follow(self, record: StepRecord, overall: Tensor | None, finite: Tensor) -> None:
        """Take over a step's weights, unless the step was skipped.

        Args:
            record: the step's record.
            overall: weights of all tasks, `(tasks,)`, where the weighting gives them; otherwise a
                task that the step has not sampled keeps its last weight.
            finite: a scalar boolean; False where the step was skipped.
        """
        before = self._before(record.weights)
        now = record.weights if overall is None else overall
        if overall is None and len(record.tasks) < len(self._names):
            places = [self._names.index(name) for name in record.tasks]
            last = now.new_zeros(len(self._names)) if before is None else before.nan_to_num()
            now = last.index_copy(0, torch.tensor(places, device=now.device), now)
        unknown = torch.full_like(now, math.nan)
        self._now = torch.where(finite, now, unknown if before is None else before)

    def by_task(self) -> dict[str, float]:
        """Return the weights by task; empty before the first step that was not skipped."""
        if self._now is not None:
            values = self._now.tolist()
            self._known = [] if any(map(math.isnan, values)) else values
        return dict(zip(self._names, self._known, strict=False))

    def restore(self, values: Sequence[float]) -> None:
        """Restore the weights of a checkpoint."""
        self._now, self._known = None, list(values)

    def _before(self, like: Tensor) -> Tensor | None:
        if self._now is None and self._known:
            return like.new_tensor(self._known)
        return self._now
