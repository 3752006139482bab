"""AANG (Dery et al., 2023): weights of composed objectives by sums of factors."""

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from tartan.core.body import cosine
from tartan.core.mixture import Mixed, RunningSum, weighted_sum
from tartan.core.step import Step
from tartan.core.task_names import JOINT, STAGES, parts_of
from tartan.core.weighting.base import Needs, Weighting


class Factored(Weighting):
    """Gives each objective a logit: the sum of a factor for each part and one of its own.

    `logit_j = W_D[d] + W_T[t] + W_R[r] + W_O[o] + W_all[j]`, all 0 at first. A softmax over two
    further logits gives the end task's share and that of all auxiliaries. A step samples some
    objectives, which share one batch of `B` examples: by `softmax(W_R)` over the sampled
    representations, inside of each by `softmax(W_D)`, inside by `softmax(W_T)`. Those with the same
    three get the same `n_j` examples. Objective `j`'s gradient counts by
    `alpha_aux * softmax(W_O + W_all)_j * n_j / B`, the softmax over the sampled ones.

    Here the factors are constant: multitasking with equal objectives ("static"). `Aang` learns
    them.

    Args:
        task_names: names of the tasks, the end task first; the others' names are those of their
            parts, joined by hyphens.

    Attributes:
        factor_names: the name `STAGE/CHOICE` of each factor.
        factors: the factors of all kinds, one after the other, `(factors,)`.
        two_way: logits of the end task and of all auxiliaries, `(2,)`.
        incidence: whether each factor is in an objective's logit, 0 or 1, `(objectives, factors)`.
    """

    needs = Needs(one_batch=True)
    factors: Tensor
    two_way: Tensor
    incidence: Tensor

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names)
        self.objectives = task_names[1:]
        self.factors_of = {name: _factors_of(name) for name in self.objectives}
        by_kind = zip(*self.factors_of.values(), strict=True)
        self.factor_names = list(dict.fromkeys(factor for kind in by_kind for factor in kind))
        incidence = torch.zeros(len(self.objectives), len(self.factor_names))
        for row, factors in zip(incidence, self.factors_of.values(), strict=True):
            row[[self.factor_names.index(factor) for factor in factors]] = 1
        self.register_buffer("incidence", incidence, persistent=False)
        self.register_buffer("factors", torch.zeros(len(self.factor_names)))
        self.register_buffer("two_way", torch.zeros(2))

    def logits(self) -> tuple[list[str], Tensor]:
        """Return all learned values, `factors` and `two_way`, with their names."""
        names = [*self.factor_names, "two_way/end_task", "two_way/auxiliaries"]
        return names, torch.cat([self.factors, self.two_way])

    def mix(self, step: Step) -> Mixed:
        """Return the sum of the gradients, weighted by `weights`."""
        return weighted_sum(step.gradients(), self.weights(step))

    def rows(self, step: Step) -> list[int]:
        """Return the step's objectives as rows of `incidence`."""
        return [self.objectives.index(task.name) for task in step.tasks[1:]]

    def weights(self, step: Step) -> Tensor:
        """Return the weights of the step's gradients, `(tasks,)`, whose sum is below 1."""
        end_task, auxiliaries = self.two_way.softmax(dim=0)
        # of a logit, only these factors weight gradients; the others have sized the batches
        kept = [float(name.split("/")[0] in ("output", JOINT)) for name in self.factor_names]
        of_gradients = self.factors * self.factors.new_tensor(kept)
        among = (self.incidence[self.rows(step)] @ of_gradients).softmax(dim=0)
        sizes = {task.name: step.batch.tasks[task.name].examples for task in step.tasks[1:]}
        # objectives that differ in their output alone have the same examples, which count once
        total = sum({self.factors_of[name][:3]: size for name, size in sizes.items()}.values())
        shares = among.new_tensor([size / total for size in sizes.values()])
        return torch.cat([end_task[None], auxiliaries * among * shares])

    def batch_sizes(self, tasks: Sequence[str], total: int) -> dict[str, int]:
        """See the class; numbers are whole, at least one for each objective."""
        values = dict(zip(self.factor_names, self.factors.tolist(), strict=True))
        ways = {}
        for task in tasks:
            data, transform, representation, *_ = self.factors_of[task]
            ways[task] = (representation, data, transform)
        shares = {}
        for way in ways.values():
            share = 1.0
            for depth, factor in enumerate(way):
                beside = dict.fromkeys(w[depth] for w in ways.values() if w[:depth] == way[:depth])
                # relative to this factor, so that no sum is 0 or infinite where factors are large
                beside_it = (math.exp(min(values[own] - values[factor], 700)) for own in beside)
                share *= 1 / sum(beside_it)
            shares[way] = share
        sizes = dict(zip(shares, apportioned(total, list(shares.values())), strict=True))
        return {task: sizes[way] for task, way in ways.items()}

    def overall(self) -> Tensor:
        """Return all tasks' weights, the auxiliaries' by a softmax over all objectives' logits."""
        end_task, auxiliaries = self.two_way.softmax(dim=0)
        among = (self.incidence @ self.factors).softmax(dim=0)
        return torch.cat([end_task[None], auxiliaries * among])


def _factors_of(name: str) -> tuple[str, ...]:
    """Return the names of an objective's factors: one of each stage, and its own."""
    parts = parts_of(name)
    if parts is None:
        raise ValueError(f"auxiliary task {name!r} is no composed objective (aang_td, ...)")
    kinds = zip((*STAGES, JOINT), (*parts, name), strict=True)
    return tuple(f"{kind}/{choice}" for kind, choice in kinds)


def apportioned(total: int, shares: Sequence[float]) -> list[int]:
    """Return whole numbers with the sum `total` in proportion to `shares`, each at least 1.

    By the largest remainder; of shares that are equal to nine digits, the first.
    """
    if len(shares) > total:
        raise ValueError(f"{total} examples cannot be shared by {len(shares)}")
    exact = [round(total * share, 9) for share in shares]
    parts = [int(value) for value in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: -round(exact[i] - parts[i], 9))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    while 0 in parts:
        parts[parts.index(max(parts))] -= 1
        parts[parts.index(0)] += 1
    return parts


class Aang(Factored):
    """Learns the factors of `Factored` from the cosines of objectives with the meta-gradient.

    Each sampled objective's `c_j = cos(g_meta, g_j)` counts for all five factors of its logit. Of
    the two-way logits, the end task's gets the end task's cosine, and the auxiliaries' that of
    their weighted sum. Every third step, each moves by its learning rate times the mean over three
    steps. A step is combined with the weights from before it, so that each gradient is added as
    soon as it is computed; the end task's is kept until the auxiliaries' sum is known.

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

    def __init__(
        self,
        task_names: list[str],
        factor_lr: Annotated[float, Ge(0)] = 0.1,
        two_way_lr: Annotated[float, Ge(0)] = 0.1,
        every: Annotated[int, Ge(1)] = 3,
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
        due = self.seen % self.every == 0  # `where`, not `if`: a branch would wait for the device
        for logits, pending, lr in (
            (self.factors, self.pending, self.factor_lr),
            (self.two_way, self.pending_two_way, self.two_way_lr),
        ):
            logits.add_(torch.where(due, lr / self.every * pending, 0.0))
            pending.copy_(torch.where(due, 0.0, pending))
