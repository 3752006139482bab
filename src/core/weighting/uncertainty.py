"""Weights from learned task uncertainty."""

from __future__ import annotations

import torch
from torch import Tensor

from src.core.weighting.base import Observation, Weighting
from src.errors import UserError


class Uncertainty(Weighting):
    """`alpha_i = exp(-s_i)`, with `s_i = log sigma_i^2` learned (Kendall et al., 2018, equation 7).

    The joint loss is `sum_i exp(-s_i) L_i + s_i`; its derivative with respect to `s_i`,
    `1 - exp(-s_i) L_i`, is known in closed form, and `s` takes a gradient step with it. The weights
    do not sum to 1.

    Args:
        task_names: the tasks.
        lr: learning rate of `s`.
    """

    sums_to_one = False
    log_variances: Tensor

    def __init__(self, task_names: list[str], lr: float = 0.01) -> None:
        if not lr >= 0:
            raise UserError(f"weighting.lr must not be negative, got {lr}")
        super().__init__(task_names)
        self.lr = lr
        self.register_buffer("log_variances", torch.zeros(len(task_names)))
        self._losses: list[Tensor] = []

    def factor(self, index: int, observation: Observation) -> Tensor:
        self._losses.append(observation.loss.to(self.log_variances.dtype))
        return (-self.log_variances[index]).exp()

    def finish(self) -> Tensor:
        losses, self._losses = torch.stack(self._losses), []
        alpha = (-self.log_variances).exp()
        self.log_variances.sub_(self.lr * (1 - alpha * losses))
        return alpha
