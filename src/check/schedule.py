"""The stages that each method would run on these data: its tasks, steps, passes and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hydra import compose
from omegaconf import DictConfig, OmegaConf

from src.check.inputs import Inputs
from src.configuration.build import build
from src.core.task_names import END_TASK
from src.core.weighting.base import Weighting
from src.core.weighting.uniform import Uniform
from src.experiment.prepare import auxiliaries_of, enabled_stages, mixes_with_end_task, module_class
from src.methods.stage import Stage

TEXT_METHODS = ("finetune", "tapt", "dapt", "dapt_tapt", "mt_tartan", "meta_tartan")
IMAGE_METHODS = ("finetune", "pretrain", "mt_tartan", "meta_tartan")
_METHODS_OWN = ("module", "auxiliaries", "meta_head", "enabled")
"""Settings of a stage that make it its method's: not taken over to another method's stage."""


@dataclass(frozen=True)
class StagePlan:
    """One stage on these data.

    Attributes:
        name: its name in the method.
        settings: its settings.
        tasks: the tasks it trains, the end task first if it is among them.
        steps: optimiser steps, unless patience ends it.
        least_steps: steps after which patience ends it at the earliest.
        interval: steps between two evaluations on dev; None without any.
        weighting: what mixes the tasks.
        meta_gradient: whether a step takes it.
        sharing_heads: of the tasks those whose head is an earlier one's.
    """

    name: str
    settings: Stage
    tasks: tuple[str, ...]
    steps: int
    least_steps: int
    interval: int | None
    weighting: Weighting
    meta_gradient: bool
    sharing_heads: frozenset[str] = frozenset()

    @property
    def passes(self) -> int:
        """Forward and backward passes of a step, each over a batch, or a sampled task's part."""
        tasks, sampled = len(self.tasks), self.settings.sampled
        if sampled is not None:
            tasks -= self.auxiliaries - sampled
        second = tasks if self.weighting.needs.second_batches else 0
        return tasks + second + int(self.meta_gradient)

    @property
    def auxiliaries(self) -> int:
        """Auxiliary tasks, sampled or not."""
        return len(self.tasks) - int(END_TASK in self.tasks)

    @property
    def with_own_head(self) -> list[str]:
        """The tasks, one for each head."""
        return [task for task in self.tasks if task not in self.sharing_heads]


@dataclass(frozen=True)
class MethodPlan:
    """The stages of a method, in order.

    Attributes:
        name: of the method.
        configured: whether it is the one that the command names.
    """

    name: str
    configured: bool
    stages: tuple[StagePlan, ...]


def method_plans(config: DictConfig, inputs: Inputs) -> tuple[list[MethodPlan], dict[str, str]]:
    """The plan of each method that suits the data, and why others have none.

    The command's own method is as the command says. Others are as `conf/method` has them, with the
    command's settings for stages that they share with it, by name (`joint`, `finetune`, ...).
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
    """The config of a method that the command does not name, as to its stages."""
    whole = compose("check", overrides=[f"method={name}"])
    OmegaConf.set_struct(whole, False)
    whole.max_steps = config.max_steps
    for stage, settings in whole.method.stages.items():
        if stage in config.method.stages:
            own: Any = OmegaConf.to_container(config.method.stages[stage], resolve=True)
            shared = {key: value for key, value in own.items() if key not in _METHODS_OWN}
            whole.method.stages[stage] = OmegaConf.merge(settings, shared)
    return whole


def _lacking(stages: Mapping[str, Stage], inputs: Inputs) -> str | None:
    """Return what a method would need that is not there."""
    for stage in stages.values():
        if module_class(stage).trains_auxiliaries and not _auxiliaries(stage, inputs):
            wanted = {"domain": "domain text", "task": "text to mask"}
            return f"no {wanted.get(stage.auxiliaries, 'auxiliary task')}"
    return None


def _auxiliaries(stage: Stage, inputs: Inputs) -> list[str]:
    """The auxiliary tasks a stage would train: the config's, or what every text task has."""
    found = {name: auxiliary for name, (auxiliary, _) in inputs.auxiliaries.items()}
    configured = {name: found[name] for name in inputs.configured}
    return auxiliaries_of(stage, configured) or auxiliaries_of(stage, found)


def _plan(name: str, stage: Stage, config: DictConfig, inputs: Inputs) -> StagePlan:
    module = module_class(stage)
    tasks = [END_TASK] if module.trains_end_task else []
    tasks += _auxiliaries(stage, inputs) if module.trains_auxiliaries else []
    train = len(inputs.prepared.splits.train)
    rows = inputs.rows()
    examples = stage.epoch_examples(
        train if module.trains_end_task else None,
        [len(rows[task]) for task in tasks if task != END_TASK],
    )
    steps = stage.steps(examples)
    interval = min(stage.evaluation_interval(examples), steps) if module.trains_end_task else None
    least = steps
    if interval is not None and stage.patience is not None:
        # the first evaluation is the best, and `patience` others follow
        least = min(steps, (1 + stage.patience) * interval)
    weighting: Weighting = (
        build(config.weighting, "weighting", task_names=tasks)
        if mixes_with_end_task(module)
        else Uniform(tasks)
    )
    meta = bool(module.has_meta_head and weighting.needs.meta_gradient)
    heads: dict[str, str] = {}
    for task in tasks:
        shared = (
            None
            if task == END_TASK
            else getattr(inputs.auxiliaries[task][1].objective, "shared_head", None)
        )
        heads.setdefault(shared or task, task)
    sharing = frozenset(tasks) - frozenset(heads.values())
    return StagePlan(name, stage, tuple(tasks), steps, least, interval, weighting, meta, sharing)
