"""Plans the stages of each method on these data: tasks, steps, passes and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hydra import compose
from lightning.pytorch.callbacks import EarlyStopping
from omegaconf import DictConfig, OmegaConf

from tartan.check.inputs import Inputs
from tartan.check.table_experiments import EXPERIMENTS, experiment_asked_for, is_for_tables
from tartan.configuration.build import build
from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.core.weighting.uniform import Uniform
from tartan.experiment.prepare import (
    auxiliaries_of,
    enabled_stages,
    mixes_with_end_task,
    module_class,
)
from tartan.methods.fit import user_callbacks
from tartan.methods.stage import Stage

TEXT_METHODS = ("finetune", "tapt", "dapt", "dapt_tapt", "mt_tartan", "meta_tartan")
IMAGE_METHODS = ("finetune", "pretrain", "mt_tartan", "meta_tartan")
_METHODS_OWN = ("module", "auxiliaries", "meta_head", "sampled", "enabled")
"""Settings of a stage that belong to its method and are not applied to another method's stage."""


@dataclass(frozen=True)
class StagePlan:
    """A stage of a method on these data.

    Attributes:
        name: the stage's name in the method.
        settings: its settings.
        tasks: the tasks that it trains; the end task, if among them, comes first.
        steps: optimiser steps, unless patience ends the stage.
        least_steps: the fewest steps after which patience can end the stage.
        interval: steps between two evaluations on dev; None without evaluations.
        weighting: the weighting that combines the tasks' gradients.
        meta_gradient: whether each step computes the meta-gradient.
        with_own_head: the tasks without those that share an earlier task's head.
    """

    name: str
    settings: Stage
    tasks: tuple[str, ...]
    steps: int
    least_steps: int
    interval: int | None
    weighting: Weighting
    meta_gradient: bool
    with_own_head: tuple[str, ...]

    @property
    def passes(self) -> int:
        """Number of forward and backward passes of a step, of a batch or a sampled part each."""
        tasks, sampled = len(self.tasks), self.settings.sampled
        if sampled is not None:
            tasks -= self.auxiliaries - sampled
        second = tasks if self.weighting.needs.second_batches else 0
        return tasks + second + int(self.meta_gradient)

    @property
    def auxiliaries(self) -> int:
        """Number of auxiliary tasks, sampled or not."""
        return len(self.tasks) - int(END_TASK in self.tasks)


@dataclass(frozen=True)
class MethodPlan:
    """The stages of a method, in order.

    Attributes:
        name: the method's name.
        configured: whether it is the one that the command names.
    """

    name: str
    configured: bool
    stages: tuple[StagePlan, ...]


def method_plans(config: DictConfig, inputs: Inputs) -> tuple[list[MethodPlan], dict[str, str]]:
    """Return the plan of each method that suits the data, and why the others have none.

    The command's own method is planned with the command's options. The others are planned as in
    `conf/method`, or, beside an experiment for tables of one's own, as in theirs; with the
    command's options for stages of the same name (`joint`, `finetune`, ...).
    """
    own = str(config.method.name)
    suiting = TEXT_METHODS if inputs.encoder_of_text is not None else IMAGE_METHODS
    plans, missing = [], {}
    for name in [*suiting, *([] if own in suiting else [own])]:
        whole = config if name == own else _other_method(name, config)
        stages = enabled_stages(whole)
        lacking = _lacking(stages, inputs)
        if lacking is not None:
            missing[name] = lacking
            continue
        planned = tuple(_plan(n, stage, whole, inputs) for n, stage in stages.items())
        plans.append(MethodPlan(name, name == own, planned))
    return plans, missing


def _other_method(name: str, config: DictConfig) -> DictConfig:
    """Return the config of a method that the command does not name, as far as stages go."""
    chosen = f"method={name}"
    if name in EXPERIMENTS and is_for_tables(experiment_asked_for()):
        chosen = f"+experiment={EXPERIMENTS[name]}"
    whole = compose("check", overrides=[chosen])
    OmegaConf.set_struct(whole, False)
    whole.max_steps = config.max_steps
    # resolved here: what they refer to may be options that the command alone has
    whole.callbacks = OmegaConf.create(OmegaConf.to_container(config.callbacks, resolve=True))
    for stage, settings in whole.method.stages.items():
        if stage in config.method.stages:
            own: Any = OmegaConf.to_container(config.method.stages[stage], resolve=True)
            shared = {key: value for key, value in own.items() if key not in _METHODS_OWN}
            whole.method.stages[stage] = OmegaConf.merge(settings, shared)
    return whole


def _lacking(stages: Mapping[str, Stage], inputs: Inputs) -> str | None:
    """Return what a method would need that these data lack; None if nothing."""
    for stage in stages.values():
        if module_class(stage).trains_auxiliaries and not _auxiliaries(stage, inputs):
            wanted = {"domain": "domain text", "task": "text to mask"}
            return f"no {wanted.get(stage.auxiliaries, 'auxiliary task')}"
    return None


def _auxiliaries(stage: Stage, inputs: Inputs) -> list[str]:
    """Return the auxiliary tasks of a stage: the config's, or the end task's own text."""
    found = {name: auxiliary for name, (auxiliary, _) in inputs.auxiliaries.items()}
    configured = {name: found[name] for name in inputs.configured}
    return auxiliaries_of(stage, configured) or auxiliaries_of(stage, found)


def _plan(name: str, stage: Stage, config: DictConfig, inputs: Inputs) -> StagePlan:
    module, prepared = module_class(stage), inputs.all_prepared
    tasks = [END_TASK] if module.trains_end_task else []
    tasks += _auxiliaries(stage, inputs)
    steps, interval = stage.length(*prepared.counts(tasks))
    least = steps
    stops = [c.patience for c in user_callbacks(config) if isinstance(c, EarlyStopping)]
    patience = min(stops, default=stage.patience)
    if module.trains_end_task and patience is not None:
        # the first evaluation is the best, and `patience` others follow
        least = min(steps, (1 + patience) * interval)
    weighting: Weighting = (
        build(config.weighting, "weighting", task_names=tasks)
        if mixes_with_end_task(module)
        else Uniform(tasks)
    )
    meta = bool(module.has_meta_head and weighting.needs.meta_gradient)
    heads = {getattr(prepared.objective(t), "shared_head", None) or t: t for t in reversed(tasks)}
    return StagePlan(
        name=name,
        settings=stage,
        tasks=tuple(tasks),
        steps=steps,
        least_steps=least,
        interval=interval if module.trains_end_task else None,
        weighting=weighting,
        meta_gradient=meta,
        with_own_head=tuple(heads.values()),
    )
