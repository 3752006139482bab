"""Checks a run's options, and reads what it trains: end task, auxiliary tasks, encoder, stages."""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from annotated_types import Le
from hydra.core.hydra_config import HydraConfig
from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf
from pydantic import ConfigDict
from torchmetrics import Metric

from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Needs, Weighting
from tartan.core.weighting.fixed import Uniform
from tartan.data.end_task import HeldOutText
from tartan.data.kinds import kind_of
from tartan.data.prepared import (
    SETTINGS,
    Auxiliary,
    AuxiliaryContext,
    AuxiliarySettings,
    Prepared,
    assemble,
)
from tartan.encoders.pretrained import load_encoder
from tartan.errors import UserError, first_line
from tartan.evaluation.metrics import check_higher_is_better, check_metric
from tartan.files import read_yaml
from tartan.methods.module import TaskMixing
from tartan.methods.parts import check_weighting
from tartan.methods.stage import Stage
from tartan.methods.trainer import Precision
from tartan.objectives.classification import class_weights
from tartan.runs.folder import CONFIG, as_given, option_of
from tartan.settings import (
    STRICT,
    TARGET,
    Checked,
    Count,
    Natural,
    NonNegative,
    Text,
    build,
    check_node,
    typed,
)

log = logging.getLogger(__name__)

Nodes = Mapping[str, Mapping[str, Any]]

_OF_DATA = ("task", "auxiliary", "encoder")
_SHIPPED = tuple(f"tartan.{package}." for package in ("data", "encoders", "objectives"))
"""Packages whose classes a run's folder, which may be another's, can have built."""

_OF_STAGES = {
    "accumulate_grad_batches", "barebones", "callbacks", "check_val_every_n_epoch",
    "default_root_dir", "enable_checkpointing", "fast_dev_run", "gradient_clip_val",
    "limit_test_batches", "limit_train_batches", "limit_val_batches", "logger", "max_epochs",
    "max_steps", "overfit_batches", "plugins", "reload_dataloaders_every_n_epochs",
    "use_distributed_sampler", "val_check_interval",
}  # fmt: skip
"""Options of Lightning's Trainer that a run sets itself."""


@dataclass
class TrainerSettings(Checked):
    """Options of Lightning's Trainer that a run reads; it takes others too (`conf/trainer/`)."""

    __pydantic_config__ = ConfigDict(**STRICT | {"extra": "ignore"})

    accelerator: str
    precision: Precision
    log_every_n_steps: Natural | None = None
    enable_progress_bar: bool = True
    strategy: Literal["auto", "single_device", "ddp", "fsdp"] = "auto"


@dataclass
class MethodSettings(Checked):
    """A method: a list of stages (`conf/method/`)."""

    name: str
    stages: Mapping[str, Stage]


@dataclass
class RunSettings(Checked):
    """Options of a run, and its groups (`conf/config.yaml`)."""

    seed: Natural
    data_dir: str | None
    cache_dir: Text
    micro_batch_size: Count | None
    packed: bool
    gradient_checkpointing: bool
    evaluation_batch_size: Count
    max_steps: Count | None
    evaluate_test: bool
    checkpoint_minutes: NonNegative
    non_finite_patience: Count
    fine_tuning_baseline: Stage | None
    num_workers: Annotated[Natural, Le(256)] | None  # more can only be a slip
    metrics: Nodes
    run: Mapping[str, Any]
    task: Mapping[str, Any]
    auxiliary: Mapping[str, Any]
    encoder: Mapping[str, Any]
    classifier: Mapping[str, Any]
    weighting: Mapping[str, Any]
    method: MethodSettings
    trainer: TrainerSettings
    logger: Nodes
    callbacks: Nodes
    paths: Mapping[str, Any]


_READERS = {"encoder.name": ".PretrainedEncoder", "task.name": ".FileTask", "method.name": ""}
"""Options that name a thing in results, and the class for which the name also chooses it."""


def run_settings(config: DictConfig) -> RunSettings:
    """Return the options of a run, all of them checked, those of its classes too."""
    read = {field.name for field in fields(RunSettings)}
    read |= set(re.findall(r"\$\{(\w+)", OmegaConf.to_yaml(config)))  # what others refer to
    if unread := sorted({*map(str, config)} - read):
        raise UserError(f"there is no option {unread[0]}, and no option refers to it")
    for name in sorted(_OF_STAGES & {*config.trainer}):
        raise UserError(f"trainer.{name} is not read: options of stages and runs set it")
    given = set(map(option_of, overrides_of_run()))
    for option, reader in _READERS.items():
        target = str(OmegaConf.select(config, option.replace(".name", "._target_")) or "tartan.")
        chooses = bool(reader) and target.endswith(reader)
        # one thing would be trained under another's name
        if option in given and target.startswith("tartan.") and not chooses:
            raise UserError(f"{option} would only rename what is chosen otherwise; leave it out")
    settings = typed(config, RunSettings)
    for group in ("task", "encoder", "classifier", "weighting", "auxiliary"):
        check_node(config[group], group)
    return settings


def overrides_of_run() -> list[str]:
    """Return the options of the command line; none in a program."""
    return as_given(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def take_options_of(run: Path, config: DictConfig) -> None:
    """Take from the run's folder what it trained on and began with, if the command has no other."""
    given = {option_of(override).partition(".")[0] for override in overrides_of_run()}
    if not (run / CONFIG).is_file() or "experiment" in given:
        if given.isdisjoint({"task", "experiment"}):
            raise UserError(f"{run / CONFIG} does not exist; name the labelled texts: task=...")
        return
    stored: Any = read_yaml(run / CONFIG)
    for group in set(_OF_DATA) - given:
        for target in _targets(stored[group]):
            try:
                home = get_class(target).__module__ if target.startswith(_SHIPPED) else ""
            except (ImportError, ValueError) as error:
                raise UserError(f"{run / CONFIG}: {target}: {first_line(error)}") from error
            if not home.startswith(_SHIPPED):
                raise UserError(f"{run / CONFIG} names {target}; choose it yourself: {group}=...")
        config[group] = OmegaConf.create(stored[group])


def _targets(node: Any) -> Iterator[str]:
    """Yield the names of the classes and functions that building a node would call."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key == TARGET:
            yield str(value)
        elif isinstance(value, dict | list):
            yield from _targets(value)


def enabled_stages(config: DictConfig) -> dict[str, Stage]:
    """Check all options of `config`, and return the method's enabled stages."""
    settings = run_settings(config)
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
    modules = map(module_class, stages.values())
    mixes = any(module.trains_end_task and module.trains_auxiliaries for module in modules)
    if not (mixes or str(config.weighting.get("_target_", "")).endswith(".Uniform")):
        log.warning("weighting is not read: method=%s does not mix tasks", method.name)
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


def prepare(config: DictConfig, stages: Mapping[str, Stage]) -> Prepared:
    """Read all data, load the encoder, and check that they fit together."""
    used = _used_auxiliaries(config, stages)
    source: Any = build(config.task, "task")
    task, classification = source, None
    if not isinstance(source, HeldOutText):
        kind, configured = kind_of(source), OmegaConf.to_container(config.metrics, resolve=True)
        metrics = kind.metrics(cast(Nodes, configured))
        check_metric(source.metric, metrics, named=kind.named)
        task = source.load()
        head: Any = OmegaConf.to_container(config.classifier, resolve=True)
        options: dict[str, Any] = {"classes": len(task.labels)}
        if head.get("logit_adjustment") and head.get("class_weights") is None:
            head["class_weights"] = "balanced"
        if (weights := head.pop("class_weights", None)) is not None:
            options["class_weights"] = class_weights(weights, task.labels, task.label_counts)
        classification = build(head, "classifier", **options)
        classification = kind.objective(classification, task.train.labels)
        for name, node in metrics.items():  # imported, so that a module can be made of it
            metric = build(node, f"metrics.{name}", **kind.sizes(len(task.labels)))
            if name == source.metric and isinstance(metric, Metric):
                check_higher_is_better(source.metric, metric)
    encoder = load_encoder(build(config.encoder, "encoder"))
    if config.gradient_checkpointing:
        encoder.recompute_activations()
    settings, cache = auxiliary_settings(config), Path(config.cache_dir).expanduser()
    return assemble(AuxiliaryContext(task, encoder, settings, cache), used, classification)


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
    mixing = {n for n, m in modules.items() if m.trains_end_task and m.trains_auxiliaries}
    needs = {}
    for name, stage in stages.items():
        tasks = auxiliaries_of(stage, auxiliaries)
        weighting: Weighting = Uniform([END_TASK, *tasks])
        if name in mixing:
            weighting = build(config.weighting, "weighting", task_names=[END_TASK, *tasks])
        check_weighting(weighting, modules[name], len(tasks), stage.sampled)
        needs[name] = weighting.needs
        weighs = weighting.needs.meta_gradient or weighting.needs.second_batches
        if weighs and stage.freeze_body:
            raise UserError("freeze_body=true leaves nothing for this weighting to weigh")
    return needs
