"""Weights each task by how slowly its loss falls (dynamic weight averaging)."""

from __future__ import annotations

import torch
from torch import Tensor

from tartan.core.mixture import Mixed, RunningMean
from tartan.core.step import Step
from tartan.core.weighting.base import Needs, Weighting
from tartan.settings import Count, Temperature, checked


class DWA(Weighting):
    """Dynamic weight averaging (Liu et al., 2019, equation 7).

    `alpha = softmax(r / temperature)`, `r_i` the ratio of task `i`'s mean losses over the last two
    windows of steps; equal weights until there are two. The paper's windows are epochs and its
    weights sum to the number of tasks; here they sum to 1, like uniform and learned ones.

    Args:
        task_names: the tasks.
        temperature: the higher, the more equal the weights (paper: 2).
        window: steps over which losses are averaged [steps].
    """

    needs = Needs(every_task=True)
    sums: Tensor
    last: Tensor
    before: Tensor
    steps: Tensor

    @checked
    def __init__(
        self, task_names: list[str], temperature: Temperature = 2.0, window: Count = 30
    ) -> None:
        super().__init__(task_names)
        self.temperature, self.window = temperature, window
        for name in ("sums", "last", "before"):
            self.register_buffer(name, torch.zeros(len(task_names)))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def mix(self, step: Step) -> Mixed:
        """Return the mean of the gradients, weighted by `alpha`; then store the step's losses."""
        alpha, mean, losses = self._alpha(), RunningMean(), []
        for i, g in enumerate(step.gradients()):
            losses.append(g.loss.to(self.sums.dtype))
            mean.add(g, alpha[i])
        self._count(torch.stack(losses))
        return mean.mixed()

    def _count(self, losses: Tensor) -> None:
        self.steps.add_(1)
        self.sums.add_(losses)
        # `where` instead of `if`: the step count is on the device, a branch would wait for it
        full = self.steps % self.window == 0
        self.before.copy_(torch.where(full, self.last, self.before))
        self.last.copy_(torch.where(full, self.sums / self.window, self.last))
        self.sums.copy_(torch.where(full, torch.zeros_like(self.sums), self.sums))

    def _alpha(self) -> Tensor:
        known = self.before > 0
        ratios = torch.where(known, self.last / torch.where(known, self.before, 1.0), 1.0)
        return (ratios / self.temperature).softmax(dim=0)
