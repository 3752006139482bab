"""Random weights: the baseline that any learned weighting has to beat."""

from __future__ import annotations

import torch
from torch import Tensor

from src.core.weighting.base import Observation, Weighting


class Random(Weighting):
    """`alpha = softmax(z)`, `z ~ N(0, 1)` drawn anew in each step (RLW, Lin et al., 2022).

    The step sets the seed of the draw, which is a function of the step.
    """

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names)
        self._alpha = torch.empty(0)

    def factor(self, index: int, observation: Observation) -> Tensor:
        if index == 0:
            loss = observation.loss
            drawn = torch.randn(len(self.task_names), device=loss.device, dtype=loss.dtype)
            self._alpha = drawn.softmax(dim=0)
        return self._alpha[index]

    def finish(self) -> Tensor:
        return self._alpha
