"""Plans steps of each stage such that all methods cost the same, and writes their experiments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml
from omegaconf import OmegaConf

from tartan.files import write_text_durably
from tartan.runs.name import option_of

if TYPE_CHECKING:
    from tartan.compare.request import Request

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


def stage_options(
    stage: str, steps: int, batch_size: int, evaluations: int, patience: int | None = None
) -> dict[str, Any]:
    """Return the options of a stage.

    Args:
        stage: the stage's name.
        steps: number of steps.
        batch_size: examples of each task in a step.
        evaluations: number of evaluations on dev, in a stage with the end task (see
            `evaluations_of`).
        patience: number of these without improvement after which such a stage ends; None for never.
    """
    evaluated = stage in WITH_END_TASK
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "patience": patience if evaluated else None,
        "max_steps": steps,
        "max_epochs": None,
    }
    if evaluated:
        options["evaluate_every"] = math.ceil(steps / evaluations)
    return options


def evaluations_of(steps: int, evaluations: int) -> int:
    """Return how often a stage of `stage_options` is evaluated if it is not stopped early.

    That is `evaluations` in a stage of more than `(evaluations - 1) ** 2` steps, and may
    be fewer in a shorter one: evaluations come at equal intervals, and after the last step.
    """
    return math.ceil(steps / math.ceil(steps / evaluations))


def experiment_of(method: str, request: Request, steps: Mapping[str, int] | None) -> dict[str, Any]:
    """Return the content of `conf/experiment/compare_METHOD.yaml`.

    Every stage has the same batch size, no early stopping, and, if it is long enough (see
    `evaluations_of`), equally many evaluations on dev, so that no method selects among more
    checkpoints than another. On text, MT-TARTAN has the end task's weight and rate of the head that
    dev chose (docs/results.md), as `custom_mt` has. The method's own options come last.

    Args:
        method: the method's name.
        request: the comparison.
        steps: number of steps of each stage; None leaves it to `max_steps`.
    """
    stages: dict[str, dict[str, Any]] = {}
    if steps is None:
        for stage in (*METHODS[method], *_named_stages(method, request)):
            stages[stage] = {"batch_size": request.batch_size, "patience": None}
    else:
        for stage, number in steps.items():
            stages[stage] = stage_options(stage, number, request.batch_size, request.evaluations)
    groups = {"method": method}
    if method == "mt_tartan" and request.reads_text:
        groups["weighting"] = "end_task_share"
        stages["joint"]["optimisation"] = {"end_head_lr": "${encoder.lr.finetune}"}
    content = OmegaConf.create({"method": {"stages": stages}})
    for owner, option, value in request.own_options:
        if owner == method and option == "weighting":
            groups["weighting"] = value
        elif owner == method:
            OmegaConf.update(content, option, yaml.safe_load(value))
    defaults = [{f"override /{group}": name} for group, name in groups.items()]
    plain: Any = OmegaConf.to_container(content)
    return {"defaults": defaults, **plain}


def _named_stages(method: str, request: Request) -> list[str]:
    """Return the stages that options of all runs or of the method name: they may enable them."""
    options = [option_of(override) for override in request.overrides]
    options += [option for owner, option, _ in request.own_options if owner == method]
    parts = [option.split(".") for option in options]
    return [names[2] for names in parts if names[:2] == ["method", "stages"] and len(names) > 3]


def write_experiment(method: str, request: Request, steps: Mapping[str, int] | None) -> None:
    """Write `experiment_of` to where `hydra.searchpath=['file://FOLDER/conf']` finds it."""
    text = "# @package _global_\n# Written by tartan compare.\n"
    text += yaml.safe_dump(experiment_of(method, request, steps), sort_keys=False)
    write_text_durably(request.folder / "conf" / "experiment" / f"compare_{method}.yaml", text)
