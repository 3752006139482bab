"""Plans how long a comparison's runs are, all at equal cost, and writes their experiments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from omegaconf import OmegaConf

from tartan.errors import UserError
from tartan.files import Plain, write_text_durably
from tartan.runs.folder import option_of

if TYPE_CHECKING:
    from tartan.compare.request import Request

METHODS: dict[str, tuple[str, ...]] = {
    "finetune": ("finetune",),
    "tapt": ("tapt", "finetune"),
    "dapt": ("dapt", "finetune"),
    "dapt_tapt": ("dapt", "tapt", "finetune"),
    "mt_tartan": ("joint",),
    "tapt_mt_tartan": ("tapt", "joint"),
    "meta_tartan": ("joint",),
    "tapt_meta_tartan": ("tapt", "joint"),
    "aang_static": ("joint",),
    "aang": ("joint",),
}
"""The stages of each method; the simplest method comes first."""
LEARNS_FROM_DEV = ("meta_tartan", "tapt_meta_tartan", "aang")
"""Methods that learn from dev, and so hold a part of their training examples out for it."""
LEAST_STEPS = 100
"""Cost of the shortest sensible run, in steps of fine-tuning: pre-training first needs more."""


class StepCost(NamedTuple):
    """The cost of a step of a stage: floating-point operations, and time [s]."""

    flops: float
    seconds: float


class Plan(Plain):
    """The content of `compare.json`: what was asked for, and what it was planned to be."""

    asked: dict[str, Any]  # the request's options, and checksums of its tables
    seconds: float | None  # for all runs, if the time was given
    start: float  # time of a run beside its steps [s]
    run_seconds: float  # expected time of a run [s]
    costs: dict[str, dict[str, StepCost]]  # of a step, by method and stage
    steps: dict[str, dict[str, int]]  # by method and stage


def plan_of(
    request: Request, costs: Mapping[str, Mapping[str, StepCost]], start: float, spent: float = 0.0
) -> Plan:
    """Return the plan of runs that all cost the same.

    They cost `steps` of fine-tuning each. Only where one fold of all methods and the final run do
    not fit into `minutes` are they shorter, because short runs mislead: the methods' learning
    curves cross. The stages of a method get equal shares of the cost. A run takes `start` seconds
    beside its steps, and `spent` seconds are over already.

    Raises:
        UserError: the runs would have fewer than `LEAST_STEPS`.
    """
    step = min(list(stages.values())[-1].flops for stages in costs.values())
    # the median, because other programs may have slowed some of the few measured steps
    step_seconds = step * median(
        c.seconds / c.flops for own in costs.values() for c in own.values()
    )
    count, seconds = request.steps, None
    if request.minutes is not None:
        seconds, runs = 60 * request.minutes - spent, len(costs) + 1
        count = min(count, int((seconds / runs - start) / step_seconds))
        if count < min(LEAST_STEPS, request.steps):
            least = math.ceil((spent + runs * (start + LEAST_STEPS * step_seconds)) / 60)
            raise UserError(
                f"minutes={request.minutes:g} is too short for {runs} runs here; take "
                f"minutes={least}, or fewer methods="
            )
    steps = {
        method: {s: max(1, round(count * step / len(stages) / c.flops)) for s, c in stages.items()}
        for method, stages in costs.items()
    }
    return Plan(
        asked=request.identity(),
        seconds=seconds,
        start=start,
        run_seconds=start + count * step_seconds,
        costs={method: dict(stages) for method, stages in costs.items()},
        steps=steps,
    )


def experiment_of(method: str, request: Request, steps: Mapping[str, int] | None) -> dict[str, Any]:
    """Return the content of `conf/experiment/compare_METHOD.yaml`.

    Every stage has the same batch size. It is evaluated once, after its last step, whose weights
    are kept: the held-out examples choose no checkpoint. On text, MT-TARTAN has the end task's
    weight and rate of the head that dev chose (docs/results.md), as `custom_mt` has. The method's
    own options come last. Without `steps` of each stage, `max_steps` says how many.
    """
    stages: dict[str, dict[str, Any]] = {
        stage: {"batch_size": request.batch_size, "patience": None}
        for stage in steps or (*METHODS[method], *_named_stages(method, request))
    }
    for stage, number in (steps or {}).items():
        stages[stage] |= {"max_steps": number, "max_epochs": None}
        if stage in ("finetune", "joint"):
            stages[stage]["evaluate_every"] = number
    groups = {"method": method}
    if method == "mt_tartan":
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
