"""Reads what a run is trained on: the end task, the auxiliary tasks, the encoder, the stages."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf
from torchmetrics import Metric

from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Needs, Weighting
from tartan.core.weighting.fixed import Uniform
from tartan.data.end_task import EndTask, HeldOutText
from tartan.data.prepared import (
    SETTINGS,
    Auxiliary,
    AuxiliaryContext,
    AuxiliarySettings,
    Prepared,
    assemble,
    check_task_name,
)
from tartan.encoders.pretrained import load_encoder
from tartan.errors import UserError, first_line
from tartan.evaluation.metrics import check_higher_is_better, check_metric
from tartan.methods.checks import check_weighting
from tartan.methods.module import TaskMixing
from tartan.methods.stage import Stage
from tartan.objectives.base import TaskObjective
from tartan.objectives.classification import class_weights
from tartan.runs.settings import run_settings
from tartan.settings import build, typed

log = logging.getLogger(__name__)


def enabled_stages(config: DictConfig, beside: Collection[str] = ()) -> dict[str, Stage]:
    """Check all options of `config`, and return the method's enabled stages.

    Options of the command that are none of a run's are named in `beside`.
    """
    settings = run_settings(config, beside)
    auxiliary_settings(config)
    method, cap, adapts = settings.method, settings.max_steps, has_no_end_task(config)
    stages = {name: stage for name, stage in method.stages.items() if stage.enabled}
    for name, stage in stages.items():
        if cap is not None:
            stages[name] = replace(stage, max_steps=min(stage.max_steps or cap, cap))
        evaluated = adapts or module_class(stage).trains_end_task
        if not evaluated and (stage.evaluate_every is not None or stage.patience is not None):
            raise UserError(
                f"method.stages.{name} does not train the end task, so that it is not evaluated: "
                "leave evaluate_every and patience null"
            )
    if adapts == any(module_class(stage).trains_end_task for stage in stages.values()):
        wrong = "trains an end task, and this task is none" if adapts else "has no end task"
        raise UserError(f"method {method.name} {wrong}")
    return stages


def auxiliary_settings(config: DictConfig) -> AuxiliarySettings:
    """Return the options that all auxiliary tasks share."""
    shared = {key: config.auxiliary[key] for key in SETTINGS if key in config.auxiliary}
    return typed(OmegaConf.create(shared), AuxiliarySettings, "auxiliary")


def has_no_end_task(config: DictConfig) -> bool:
    """Return whether a run is continued pre-training alone, judged by held-out text."""
    return bool(config.task.get("_target_") == f"{HeldOutText.__module__}.{HeldOutText.__name__}")


def module_class(stage: Stage) -> Any:
    """Return the LightningModule class that a stage names."""
    try:
        module = get_class(stage.module)
    except (ImportError, ValueError) as error:
        raise UserError(f"module={stage.module} of a stage: {first_line(error)}") from error
    says = all(hasattr(module, name) for name in ("trains_end_task", "trains_auxiliaries"))
    if not (issubclass(module, TaskMixing) and says):
        raise UserError(
            f"module={stage.module} of a stage is no subclass of TaskMixing that sets "
            "trains_end_task and trains_auxiliaries"
        )
    return module


def mixes_with_end_task(module: Any) -> bool:
    """Return whether a module trains the end task with others: only then are tasks weighted."""
    return bool(module.trains_end_task and module.trains_auxiliaries)


def prepare(config: DictConfig, stages: Mapping[str, Stage]) -> Prepared:
    """Read all data, load the encoder, and check that they fit together."""
    used = _used_auxiliaries(config, stages)
    source: Any = build(config.task, "task")
    task, classification = source, None
    if not isinstance(source, HeldOutText):
        check_metric(source.metric, config.metrics)
        task = source.load()
        classification = _classification(config, task)
        for name, node in config.metrics.items():  # imported, so that a module can be made of it
            metric = build(node, f"metrics.{name}", num_classes=len(task.labels))
            if name == source.metric and isinstance(metric, Metric):
                check_higher_is_better(source.metric, metric)
    encoder = load_encoder(build(config.encoder, "encoder"))
    if config.gradient_checkpointing:
        encoder.recompute_activations()
    options, cache = auxiliary_settings(config), Path(config.cache_dir).expanduser()
    return assemble(AuxiliaryContext(task, encoder, options, cache), used, classification)


def _classification(config: DictConfig, end_task: EndTask) -> TaskObjective[Any]:
    """Return the end task's objective, with class weights if asked for."""
    node: Any = OmegaConf.to_container(config.classifier, resolve=True)
    options: dict[str, Any] = {"classes": len(end_task.labels)}
    weights = node.pop("class_weights", None)
    if weights is not None:
        options["class_weights"] = class_weights(weights, end_task.labels, end_task.label_counts)
    objective: TaskObjective[Any] = build(node, "classifier", **options)
    return objective


def named_auxiliaries(config: DictConfig) -> dict[str, Auxiliary]:
    """Return all auxiliary tasks in the config, whether or not a stage trains them."""
    auxiliaries: dict[str, Auxiliary] = {}
    for name, node in ((str(key), node) for key, node in config.auxiliary.items()):
        if isinstance(node, DictConfig) and "_target_" in node:
            entry: Any = build(node, f"auxiliary.{name}")
            members = getattr(entry, "members", None)
            auxiliaries |= {name: entry} if members is None else members(name)
        elif name not in SETTINGS:
            raise UserError(f"auxiliary.{name} is neither a task nor one of {', '.join(SETTINGS)}")
    for name in auxiliaries:
        check_task_name(name)
    return auxiliaries


def auxiliaries_of(stage: Stage, auxiliaries: Mapping[str, Auxiliary]) -> list[str]:
    """Return the names of the auxiliary tasks that `stage` trains, in the config's order."""
    if not module_class(stage).trains_auxiliaries:
        return []
    return [name for name, a in auxiliaries.items() if stage.auxiliaries in ("all", a.kind)]


def _used_auxiliaries(config: DictConfig, stages: Mapping[str, Stage]) -> dict[str, Auxiliary]:
    """Return the auxiliary tasks that some stage trains; the texts of others are not read."""
    auxiliaries, used = named_auxiliaries(config), set()
    for name, stage in stages.items():
        tasks = auxiliaries_of(stage, auxiliaries)
        with_text = {task for task in tasks if not auxiliaries[task].left_out}
        for task in set(tasks) - with_text:
            log.warning("auxiliary %s is left out: no text (auxiliary.%s.path)", task, task)
        if module_class(stage).trains_auxiliaries and not with_text:
            wanted = f"auxiliary.{tasks[0]}.path=FILE" if tasks else "an auxiliary task"
            raise UserError(f"stage {name} of method {config.method.name} needs {wanted}")
        used |= with_text
    return {name: auxiliary for name, auxiliary in auxiliaries.items() if name in used}


def weighting_needs(
    config: DictConfig, stages: Mapping[str, Stage], prepared: Prepared
) -> dict[str, Needs]:
    """Return what the weighting of each stage needs of a step, after checking that it gets it."""
    auxiliaries = {name: auxiliary for name, (auxiliary, _) in prepared.auxiliaries.items()}
    modules = {name: module_class(stage) for name, stage in stages.items()}
    target = config.weighting.get("_target_", "").rpartition(".")[2]
    if target != "Uniform" and not any(map(mixes_with_end_task, modules.values())):
        log.warning("weighting is not read: method=%s does not mix tasks", config.method.name)
    needs = {}
    for name, stage in stages.items():
        tasks = auxiliaries_of(stage, auxiliaries)
        weighting: Weighting = Uniform([END_TASK, *tasks])
        if mixes_with_end_task(modules[name]):
            weighting = build(config.weighting, "weighting", task_names=[END_TASK, *tasks])
        check_weighting(weighting, len(tasks), stage.sampled)
        needs[name] = weighting.needs
        learned = weighting.needs.meta_gradient
        if (learned or weighting.needs.second_batches) and stage.freeze_body:
            raise UserError("freeze_body=true leaves nothing for this weighting to weigh")
        if learned and not modules[name].has_meta_head:
            raise UserError(
                "this weighting needs the meta-gradient, which "
                f"method={config.method.name} does not compute"
            )
    return needs
