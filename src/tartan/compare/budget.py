"""Plans steps of each stage such that all methods spend equally many floating-point operations."""

from __future__ import annotations

from collections.abc import Mapping

METHODS: dict[str, tuple[str, ...]] = {
    "finetune": ("finetune",),
    "tapt": ("tapt", "finetune"),
    "dapt": ("dapt", "finetune"),
    "dapt_tapt": ("dapt", "tapt", "finetune"),
    "pretrain": ("pretrain", "finetune"),
    "mt_tartan": ("joint",),
    "meta_tartan": ("joint",),
    "tapt_mt_tartan": ("tapt", "joint"),
    "tapt_meta_tartan": ("tapt", "joint"),
    "aang": ("joint",),
    "aang_static": ("joint",),
}
"""The stages of each method."""
WITH_END_TASK = ("finetune", "joint", "last_finetune")
"""Stages that are evaluated on dev."""

Costs = Mapping[str, Mapping[str, float]]
"""Floating-point operations of a step, by method and stage."""
Steps = dict[str, dict[str, int]]
"""Number of optimiser steps, by method and stage."""


def equal_steps(costs: Costs, steps: int) -> Steps:
    """Return the number of steps of each stage, at least one.

    The budget is the cost of `steps` steps of the most expensive stage. The stages of a method get
    equal shares of it, as joint training spends equally many batches on each of its tasks.

    Args:
        costs: floating-point operations of a step.
        steps: number of steps of the most expensive stage, if its method has no other.
    """
    budget = steps * max(cost for stages in costs.values() for cost in stages.values())
    return {
        method: {
            stage: max(1, round(budget / len(stages) / cost)) for stage, cost in stages.items()
        }
        for method, stages in costs.items()
    }


def spent(costs: Costs, steps: Steps) -> dict[str, float]:
    """Return the floating-point operations of each method."""
    return {
        method: sum(costs[method][stage] * number for stage, number in stages.items())
        for method, stages in steps.items()
    }
