"""Reads the options of a comparison, and plans its runs, all at equal cost."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from pydantic import ValidationError

from tartan.errors import UserError
from tartan.files import Plain, sha256_of, write_text_durably
from tartan.runs.folder import option_of
from tartan.settings import Count, Positive

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
DECIDED = {
    "seed", "method", "experiment", "max_steps", "evaluate_test", "hydra.sweep.dir",
    "hydra.run.dir", "hydra.searchpath", "task.test_share", "task.dev_share",
}  # fmt: skip
"""Options of a run that the comparison sets itself."""
_TABLES = ("task.train", "task.dev", "task.test")
"""Options that name a file of labelled examples."""
_DOMAIN = ("auxiliary.dapt.path", "auxiliary.dapt.hub", "task.domain")
"""Options that name unlabelled text of the domain."""


class Request(Plain):
    """The options of a comparison, which the command's help explains."""

    methods: tuple[str, ...]  # as in conf/method/, the simplest first
    folds: Count | None = None
    minutes: Positive | None = None
    steps: Count = 360
    batch_size: Count = 32
    pilot_steps: Count = 8
    folder: Path = Path("runs/compare")
    overrides: tuple[str, ...] = ()  # of all runs
    own_options: tuple[tuple[str, str, str], ...] = ()  # method, dotted option, value as YAML

    def identity(self) -> dict[str, Any]:
        """Return what may not change in a folder: all options, and the tables."""
        options = self.model_dump(mode="json", exclude={"folder"})
        pairs = (override.lstrip("+").partition("=") for override in self.overrides)
        paths = [Path(value.strip("'\"")) for name, _, value in pairs if name in _TABLES]
        return options | {str(path): sha256_of(path) for path in paths if path.is_file()}


_OWN = Request.model_fields.keys() - {"overrides", "own_options"}


def request_of(arguments: Sequence[str]) -> Request:
    """Read a command line of `NAME=VALUE` arguments."""
    own: dict[str, Any] = {}
    overrides: list[str] = []
    of_methods: list[tuple[str, str, str]] = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        name = key.lstrip("+~").partition("@")[0]
        method, colon, option = key.partition(":")
        if not equals and not argument.startswith("~"):
            raise UserError(f"cannot read {argument!r}; options are given as NAME=VALUE")
        if colon and method in METHODS:
            of_methods.append((method, option, value))
        elif key in _OWN and value:
            own[key] = value
        elif name in DECIDED:
            raise UserError(f"{argument}: the comparison decides that (see --help)")
        elif _is_swept(argument):
            raise UserError(f"{argument}: a comparison has one value of each option")
        else:
            overrides.append(argument)
    names = {override.lstrip("+").partition("=")[0] for override in overrides}
    if "task" not in names and "task.train" in names:
        overrides.insert(0, "task=files")
    if "auxiliary" not in names:
        overrides = [*_usual_auxiliary(names), *overrides]
    # the last counts; there is always one
    auxiliary = [o.partition("=")[2] for o in overrides if o.startswith("auxiliary=")][-1]
    own["methods"] = _methods(own.get("methods"), auxiliary)
    strangers = [method for method, _, _ in of_methods if method not in own["methods"]]
    if strangers:
        raise UserError(f"{strangers[0]} has options but is not compared (methods=)")
    own |= {"overrides": tuple(overrides), "own_options": tuple(of_methods)}
    try:
        return Request.model_validate(own, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{first['loc'][0]}: {first['msg']}, got {first['input']!r}") from error


def _usual_auxiliary(names: Collection[str]) -> list[str]:
    """Return the auxiliary tasks of a comparison that names none, as overrides of its runs.

    They are those of `custom_dapt_tapt`. Domain text that overlaps with held-out texts is left out.
    """
    if set(_DOMAIN).isdisjoint(names):
        return ["auxiliary=tapt"]
    usual = {"auxiliary.size": "10", "auxiliary.decontaminate": "true"}
    return ["auxiliary=own", *(f"{n}={value}" for n, value in usual.items() if n not in names)]


def _is_swept(argument: str) -> bool:
    """Return whether Hydra takes an override as several values, for a run each."""
    try:
        return bool(OverridesParser.create().parse_override(argument).is_sweep_override())
    except HydraException:
        return False  # the runs say what is wrong with it


def _methods(named: str | None, auxiliary: str) -> tuple[str, ...]:
    """Return the methods that were named, or those for which there is an auxiliary task."""
    if named is None:
        usual = {"none": ("finetune",), "dapt": ("finetune", "dapt", "mt_tartan")}
        own_text = ("finetune", "tapt", "mt_tartan")
        both = ("finetune", "tapt", "dapt_tapt", "mt_tartan")
        return usual.get(auxiliary, own_text if auxiliary == "tapt" else both)
    methods = tuple(dict.fromkeys(part.strip() for part in named.split(",")))
    for method in methods:
        if method not in METHODS:
            raise UserError(f"methods: there is no {method}; there are {', '.join(METHODS)}")
    return tuple(sorted(methods, key=list(METHODS).index))


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
