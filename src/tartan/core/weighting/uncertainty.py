"""Weights tasks by learned uncertainties."""

from __future__ import annotations

import torch
from torch import Tensor

from tartan.core.mixture import Mixed, RunningSum
from tartan.core.step import Step
from tartan.core.weighting.base import Weighting
from tartan.settings import NonNegative, checked


class Uncertainty(Weighting):
    """`alpha_i = exp(-s_i)`, with `s_i = log sigma_i^2` learned (Kendall et al., 2018).

    The joint loss is `sum_i exp(-s_i) L_i + s_i / 2`, the form of equation 10 for cross-entropies.
    It is taken for every task, although that for a squared error, as of the objective `tf_idf`, is
    `exp(-s_i) L_i / 2 + s_i / 2`. Its derivative with respect to `s_i`, `1/2 - exp(-s_i) L_i`, is
    known in closed form, and `s` takes a gradient step with it. The weights do not sum to 1: left
    alone, `alpha_i` approaches `1 / (2 L_i)`.

    Args:
        task_names: the tasks.
        lr: learning rate of `s`.
    """

    per_task = ("log_variances",)
    log_variances: Tensor

    @checked
    def __init__(self, task_names: list[str], lr: NonNegative = 0.01) -> None:
        super().__init__(task_names)
        self.lr = lr
        self.register_buffer("log_variances", torch.zeros(len(task_names)))

    def mix(self, step: Step) -> Mixed:
        """Return the sum of the gradients, weighted by `alpha`, and take a gradient step of `s`."""
        alpha = (-self.log_variances).exp()
        total, losses = RunningSum(), []
        for i, g in enumerate(step.gradients()):
            losses.append(g.loss.to(alpha.dtype))
            total.add(g, alpha[i])
        self.log_variances.sub_(self.lr * (0.5 - alpha * torch.stack(losses)))
        return total.mixed()
