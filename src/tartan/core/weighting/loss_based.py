"""Weights that are learned from the tasks' losses alone."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from tartan.core.mixture import Mixed, RunningMean, RunningSum
from tartan.core.step import Step
from tartan.core.weighting.base import Weighting


class DWA(Weighting):
    """Dynamic weight averaging (Liu et al., 2019, equation 7): by how slowly a loss falls.

    `alpha = softmax(r / temperature)`, `r_i` the ratio of task `i`'s mean losses over the last two
    windows of steps; equal weights until there are two. The paper's windows are epochs and its
    weights sum to the number of tasks; here they sum to 1.

    Args:
        task_names: the tasks.
        temperature: the higher, the more equal the weights (paper: 2).
        window: steps over which losses are averaged [steps].
    """

    sums: Tensor
    last: Tensor
    before: Tensor
    steps: Tensor

    def __init__(
        self,
        task_names: list[str],
        temperature: Annotated[float, Gt(0)] = 2.0,
        window: Annotated[int, Ge(1)] = 30,
    ) -> None:
        super().__init__(task_names)
        self.temperature, self.window = temperature, window
        for name in ("sums", "last", "before"):
            self.register_buffer(name, torch.zeros(len(task_names)))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def mix(self, step: Step) -> Mixed:
        """Return the mean of the gradients, weighted by `alpha`; then store the step's losses."""
        known = self.before > 0  # `where`, not `if`: a branch would wait for the device
        ratios = torch.where(known, self.last / torch.where(known, self.before, 1.0), 1.0)
        alpha = (ratios / self.temperature).softmax(dim=0)
        mean, losses = RunningMean(), []
        for i, g in enumerate(step.gradients()):
            losses.append(g.loss.to(self.sums.dtype))
            mean.add(g, alpha[i])
        self.steps.add_(1)
        self.sums.add_(torch.stack(losses))
        full = self.steps % self.window == 0
        self.before.copy_(torch.where(full, self.last, self.before))
        self.last.copy_(torch.where(full, self.sums / self.window, self.last))
        self.sums.copy_(torch.where(full, torch.zeros_like(self.sums), self.sums))
        return mean.mixed()


class Uncertainty(Weighting):
    """`alpha_i = exp(-s_i)`, with `s_i = log sigma_i^2` learned (Kendall et al., 2018).

    The joint loss is `sum_i exp(-s_i) L_i + s_i / 2`, equation 10's form for cross-entropies, and
    `s` takes a gradient step with its derivative, `1/2 - exp(-s_i) L_i`. The weights do not sum to
    1: left alone, `alpha_i` approaches `1 / (2 L_i)`.

    Args:
        task_names: the tasks.
        lr: learning rate of `s`.
    """

    log_variances: Tensor

    def __init__(self, task_names: list[str], lr: Annotated[float, Ge(0)] = 0.01) -> None:
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
