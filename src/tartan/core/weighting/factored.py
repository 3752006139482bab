"""Weights composed objectives by sums of factors (AANG, Dery et al., 2023), here constant."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tartan.core.mixture import Mixed, weighted_sum
from tartan.core.step import Step
from tartan.core.task_names import JOINT, STAGES, parts_of
from tartan.core.weighting.apportioned import apportioned
from tartan.core.weighting.base import Needs, Weighting
from tartan.errors import UserError


class Factored(Weighting):
    """Gives each objective a logit: the sum of a factor for each part and one of its own.

    `logit_j = W_D[d] + W_T[t] + W_R[r] + W_O[o] + W_all[j]`, all 0 at first. A softmax over two
    further logits gives the end task's share and that of all auxiliaries. A step samples some
    objectives, which share one batch of `B` examples: by `softmax(W_R)` over the sampled
    representations, inside of each by `softmax(W_D)`, inside by `softmax(W_T)`. Those with the same
    three get the same `n_j` examples. Objective `j`'s gradient counts by
    `alpha_aux * softmax(W_O + W_all)_j * n_j / B`, the softmax over the sampled ones.

    Here the factors are constant: multitasking with equal objectives ("static"), for which no
    meta-gradient is computed. `Aang` learns them.

    Args:
        task_names: names of the tasks, the end task first; the others' names are those of their
            parts, joined by hyphens.

    Attributes:
        factors: the factors of all kinds, one after the other, `(factors,)`.
        two_way: logits of the end task and of all auxiliaries, `(2,)`.
        incidence: whether each factor is in an objective's logit, 0 or 1, `(objectives, factors)`.

    Raises:
        UserError: a task's name is not that of a composed objective.
    """

    needs = Needs(one_batch=True)
    per_task = ()
    factors: Tensor
    two_way: Tensor
    incidence: Tensor

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names)
        self.objectives = task_names[1:]
        self.parts: dict[str, tuple[str, ...]] = {}
        for name in self.objectives:
            parts = parts_of(name)
            if parts is None:
                raise UserError(
                    f"this weighting needs composed objectives, and auxiliary task {name!r} is "
                    "none; use auxiliary=aang_td or aang_td_ed, or another weighting"
                )
            self.parts[name] = parts
        self.choices: dict[str, list[str]] = {
            stage: list(dict.fromkeys(parts[place] for parts in self.parts.values()))
            for place, stage in enumerate(STAGES)
        }
        self.choices[JOINT] = list(self.objectives)
        names = self.factor_names
        at = {name: place for place, name in enumerate(names)}
        incidence = torch.zeros(len(self.objectives), len(names))
        for row, (objective, parts) in enumerate(self.parts.items()):
            own = [*zip(STAGES, parts, strict=True), (JOINT, objective)]
            incidence[row, [at[f"{stage}/{choice}"] for stage, choice in own]] = 1
        self.register_buffer("incidence", incidence, persistent=False)
        self.register_buffer("factors", torch.zeros(len(names)))
        self.register_buffer("two_way", torch.zeros(2))

    @property
    def factor_names(self) -> list[str]:
        """The name `STAGE/CHOICE` of each of `factors`."""
        return [f"{stage}/{choice}" for stage, own in self.choices.items() for choice in own]

    def logits(self) -> tuple[list[str], Tensor]:
        """Return all learned values with their names.

        The names are those of `factors`, then `two_way/end_task` and `two_way/auxiliaries`.
        """
        names = [*self.factor_names, "two_way/end_task", "two_way/auxiliaries"]
        return names, torch.cat([self.factors, self.two_way])

    def mix(self, step: Step) -> Mixed:
        """Return the sum of the gradients, weighted by `weights`."""
        return weighted_sum(step.gradients(), self.weights(step))

    def mix_sampled(self, step: Step) -> Mixed:
        """Call `mix`, which handles a part of the objectives by itself."""
        return self.mix(step)

    def rows(self, step: Step) -> list[int]:
        """Return the step's objectives as rows of `incidence`."""
        return [self.objectives.index(task.name) for task in step.tasks[1:]]

    def weights(self, step: Step) -> Tensor:
        """Return the weights of the step's gradients, `(tasks,)`, whose sum is below 1."""
        end_task, auxiliaries = self.two_way.softmax(dim=0)
        rows = self.rows(step)
        # of a logit, only these factors weight gradients; the others have sized the batches
        kept = [float(name.split("/")[0] in ("output", JOINT)) for name in self.factor_names]
        of_gradients = self.factors * self.factors.new_tensor(kept)
        among = (self.incidence[rows] @ of_gradients).softmax(dim=0)
        sizes = [step.examples(task) for task in step.tasks[1:]]
        # objectives that differ in their output alone have the same examples, which count once
        cells = {self.parts[t.name][:3]: n for t, n in zip(step.tasks[1:], sizes, strict=True)}
        shares = among.new_tensor([size / sum(cells.values()) for size in sizes])
        return torch.cat([end_task[None], auxiliaries * among * shares])

    def batch_sizes(self, tasks: Sequence[str], total: int) -> dict[str, int]:
        """See the class; numbers are whole, at least one for each objective (`apportioned`)."""
        values = dict(zip(self.factor_names, self.factors.tolist(), strict=True))
        ways = {}
        for task in tasks:
            data, transform, representation, _ = self.parts[task]
            ways[task] = (
                f"representation/{representation}", f"data/{data}", f"transform/{transform}"
            )  # fmt: skip
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
