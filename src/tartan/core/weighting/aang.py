"""AANG: factored weights of composed objectives, learned online (Dery et al., 2023)."""

from __future__ import annotations

import torch
from torch import Tensor

from tartan.core.body_gradient import cosine
from tartan.core.mixture import Mixed, RunningSum
from tartan.core.step import Step
from tartan.core.weighting.base import Needs
from tartan.core.weighting.factored import Factored
from tartan.settings import Count, NonNegative, checked


class Aang(Factored):
    """Learns the factors of `Factored` from the cosines of objectives with the meta-gradient.

    Each sampled objective's `c_j = cos(g_meta, g_j)` counts for all five factors of its logit. Of
    the two-way logits, the end task's gets the end task's cosine, and the auxiliaries' that of
    their weighted sum. Every third step, each moves by its learning rate times the mean over three
    steps. A step is combined with the weights from before it, so that each gradient is added as
    soon as it is computed; besides the meta-gradient and the sum, the end task's gradient is kept
    until the auxiliaries' sum is known.

    Args:
        task_names: see `Factored`.
        factor_lr: learning rate of the factors (paper: 0.1 or 1).
        two_way_lr: learning rate of the two-way logits, of end task and auxiliaries (paper: 0.01 or
            0.1).
        every: number of steps over which cosines are averaged before they are applied [steps].
    """

    needs = Needs(meta_gradient=True, one_batch=True)
    pending: Tensor
    pending_two_way: Tensor
    seen: Tensor

    @checked
    def __init__(
        self,
        task_names: list[str],
        factor_lr: NonNegative = 0.1,
        two_way_lr: NonNegative = 0.1,
        every: Count = 3,
    ) -> None:
        super().__init__(task_names)
        self.factor_lr, self.two_way_lr, self.every = factor_lr, two_way_lr, every
        self.register_buffer("pending", torch.zeros_like(self.factors))
        self.register_buffer("pending_two_way", torch.zeros(2))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def mix(self, step: Step) -> Mixed:
        """Combine the gradients by the weights so far, then store their cosines."""
        alpha, total = self.weights(step), RunningSum()
        g_meta = step.meta_gradient()
        gradients = step.gradients()
        g_end = next(gradients)
        cosines = [cosine(g_meta, g_end)]
        for i, g in enumerate(gradients, start=1):
            cosines.append(cosine(g_meta, g))
            total.add(g, alpha[i])
        of_all = total.cosine(g_meta)
        total.add(g_end, alpha[0])
        of_each = torch.stack(cosines)
        self._count(self.rows(step), of_each, of_all)
        return total.mixed(of_each)

    def _count(self, rows: list[int], cosines: Tensor, of_all: Tensor) -> None:
        """Store a step's cosines, of tasks and of the auxiliaries' sum; apply them when due."""
        dtype = self.factors.dtype
        self.pending.add_(self.incidence[rows].T @ cosines[1:].to(dtype))
        self.pending_two_way.add_(torch.stack([cosines[0], of_all]).to(dtype))
        self.seen.add_(1)
        # `where` instead of `if`: the count is on the device, a branch would wait for it
        due = self.seen % self.every == 0
        for logits, pending, lr in (
            (self.factors, self.pending, self.factor_lr),
            (self.two_way, self.pending_two_way, self.two_way_lr),
        ):
            logits.add_(torch.where(due, lr / self.every * pending, 0.0))
            pending.copy_(torch.where(due, 0.0, pending))
