"""Prepares everything that a run needs before its first step: checked settings, data, encoder."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from torchmetrics import Metric

from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.core.weighting.fixed import Uniform
from tartan.data.auxiliary import (
    SETTINGS,
    Auxiliary,
    AuxiliaryContext,
    AuxiliaryExamples,
    AuxiliarySettings,
    check_task_name,
)
from tartan.data.end_task import EndTask, EndTaskSource
from tartan.data.held_out_text import HeldOutText
from tartan.data.prepared import Labelled, Prepared
from tartan.data.remarks import warn_of_imbalance
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.data.tokenise import check_length
from tartan.encoders.base import Encoder
from tartan.encoders.export import check_masked_lm
from tartan.encoders.pretrained import load_encoder
from tartan.encoders.text_encoder import require_text_encoder
from tartan.errors import UserError, first_line
from tartan.evaluation.named_metrics import check_higher_is_better, check_metric
from tartan.experiment.checks import check_trainer, writable_folder
from tartan.experiment.settings import RunSettings
from tartan.experiment.unlearned_weights import warn_of_unlearned_weights
from tartan.methods.checks import check_sampling, check_weighting
from tartan.methods.module import TaskMixing
from tartan.methods.stage import Stage
from tartan.objectives.base import TaskObjective
from tartan.objectives.class_weights import class_weights
from tartan.run_folder.name import as_given, option_of
from tartan.settings import build, typed

log = logging.getLogger(__name__)


def enabled_stages(config: DictConfig) -> dict[str, Stage]:
    """Check all options of `config`, and return the method's enabled stages.

    Raises:
        UserError: an option is invalid, or no stage trains the end task.
    """
    stages: dict[str, Stage] = {}
    whole = [str(name) for name, node in config.method.stages.items() if "module" in set(node)]
    for name, node in config.method.stages.items():
        if "module" not in set(node):  # a DictConfig does not hold what is ???
            raise UserError(
                f"method.stages.{name} is a stage of another method: method={config.method.name} "
                f"has only {', '.join(whole)}; leave out method=, or the +experiment= that sets "
                "options of this stage"
            )
    own = {key: config.auxiliary[key] for key in SETTINGS if key in config.auxiliary}
    settings = typed(config, RunSettings)
    typed(OmegaConf.create(own), AuxiliarySettings, "auxiliary")
    cap = settings.max_steps
    for name, stage in settings.method.stages.items():
        if cap is not None:
            stage = replace(stage, max_steps=min(stage.max_steps or cap, cap))
        if stage.enabled:
            _check_evaluated(name, stage, evaluated=has_no_end_task(config))
            stages[name] = stage
    with_end_task = [n for n, stage in stages.items() if module_class(stage).trains_end_task]
    if not stages or not (with_end_task or has_no_end_task(config)):
        raise UserError(f"method {config.method.name} has no enabled stage with the end task")
    if with_end_task and has_no_end_task(config):
        raise UserError(
            f"stage {with_end_task[0]} of method {config.method.name} trains an end task, and "
            "task=held_out_text has none; use +experiment=pretrain, or name a task"
        )
    return stages


def _check_evaluated(name: str, stage: Stage, *, evaluated: bool) -> None:
    """Check that only a stage that is evaluated has options for that.

    Raises:
        UserError: another one has; the message names the option.
    """
    if evaluated or module_class(stage).trains_end_task:
        return
    for option in ("evaluate_every", "patience"):
        if getattr(stage, option) is not None:
            raise UserError(
                f"method.stages.{name}.{option}={getattr(stage, option)}: this stage is not "
                "evaluated, since it does not train the end task; leave it null"
            )


def module_class(stage: Stage) -> Any:
    """Return the LightningModule class that a stage names.

    Raises:
        UserError: there is no such class, or it does not say what it trains.
    """
    try:
        folder, _, name = stage.module.rpartition(".")
        found = getattr(importlib.import_module(folder), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"module={stage.module} of a stage cannot be imported: {first_line(error)}"
        ) from error
    if not (isinstance(found, type) and issubclass(found, TaskMixing)):
        raise UserError(f"module={stage.module} of a stage is not a subclass of TaskMixing")
    return found


def prepare(config: DictConfig, stages: Mapping[str, Stage]) -> Prepared:
    """Read all data, load the encoder, and check that they fit together.

    Raises:
        UserError: an option, the data or the encoder is invalid.
    """
    used = _used_auxiliaries(config, stages)
    check_trainer(config)
    if config.run.folder is not None:
        writable_folder(config.run.folder, "hydra.run.dir")
    cache_dir = writable_folder(config.cache_dir, "cache_dir")
    source: EndTaskSource | HeldOutText = build(config.task, "task")
    if isinstance(source, HeldOutText):
        return _without_end_task(config, source, used)
    check_metric(source.metric, config.metrics)
    end_task = source.load()
    encoder = load_encoder(build(config.encoder, "encoder"))
    if config.gradient_checkpointing:
        encoder.recompute_activations()
    for name, auxiliary in used.items():
        auxiliary.check(name, encoder)
    takes_unlabelled = config.task.get("empty_label") == "unlabelled"
    has_unlabelled = takes_unlabelled and getattr(end_task, "unlabelled", None) is not None
    if has_unlabelled and not any(auxiliary.kind == "task" for auxiliary in used.values()):
        log.warning(
            "task.empty_label=unlabelled: the rows without a label are not read: method=%s does "
            "not train on the task's text",
            config.method.name,
        )
    _check_weighting(config, stages, used, sum(end_task.label_counts))
    for name, node in config.metrics.items():  # imported here, so that a module can be made of it
        metric = build(node, f"metrics.{name}", num_classes=len(end_task.labels))
        if name == source.metric and isinstance(metric, Metric):
            check_higher_is_better(source.metric, metric)
    classification = _classification(config, end_task)
    classification.collate(encoder, 1)  # says so if the encoder does not fit
    splits = end_task.splits(encoder, cache_dir)
    context = auxiliary_context(
        config, encoder, end_task=end_task, train_examples=len(splits.train)
    )
    auxiliaries = _read(used, context)
    counts = {name: len(examples.rows) for name, (_, examples) in auxiliaries.items()}
    _warn_of_large_batches(stages, used, {END_TASK: len(splits.train), **counts})
    return Prepared(encoder, auxiliaries, Labelled(end_task, splits, classification))


def has_no_end_task(config: DictConfig) -> bool:
    """Return whether a run is continued pre-training alone, judged by held-out text."""
    return _makes(config.task, HeldOutText)


def _makes(node: DictConfig, kind: type) -> bool:
    """Return whether a config's node makes an object of exactly this class."""
    return bool(node.get("_target_") == f"{kind.__module__}.{kind.__qualname__}")


def _without_end_task(
    config: DictConfig, held_out: HeldOutText, used: Mapping[str, Auxiliary]
) -> Prepared:
    """Prepare a run without an end task, which trains an encoder for later use."""
    source = build(config.encoder, "encoder")
    encoder = require_text_encoder(load_encoder(source), "continued pre-training")
    if config.gradient_checkpointing:
        encoder.recompute_activations()
    check_masked_lm(encoder)
    check_length("task.max_length", held_out.max_length, encoder)
    for name, auxiliary in used.items():
        auxiliary.check(name, encoder)
    auxiliaries = _read(used, auxiliary_context(config, encoder, held_out=held_out))
    if len({repr(examples.objective) for _, examples in auxiliaries.values()}) > 1:
        raise UserError(
            "the texts of all corpora are pooled for one masked-LM head, so that "
            "auxiliary.NAME.objective has to be the same for all"
        )
    return Prepared(encoder, auxiliaries, labelled=None, held_out=held_out)


def _read(
    used: Mapping[str, Auxiliary], context: AuxiliaryContext
) -> dict[str, tuple[Auxiliary, AuxiliaryExamples]]:
    auxiliaries = {}
    for name, auxiliary in used.items():
        examples = auxiliary.examples(name, context)
        log.info(
            "auxiliary %s: %s examples of %s", name, f"{len(examples.rows):,}", examples.source
        )
        auxiliaries[name] = (auxiliary, examples)
    return auxiliaries


def _classification(config: DictConfig, end_task: EndTask) -> TaskObjective[Any]:
    """Return the end task's objective, with class weights if asked for.

    Raises:
        UserError: an option of `classifier` does not fit the task.
    """
    node: dict[str, Any] = OmegaConf.to_container(config.classifier, resolve=True)  # type: ignore[assignment]
    options: dict[str, Any] = {"classes": len(end_task.labels)}
    asked = node.pop("class_weights", None)
    if asked is None:
        warn_of_imbalance(end_task.name, end_task.labels, end_task.label_counts)
    else:
        options["class_weights"] = class_weights(asked, end_task.labels, end_task.label_counts)
    objective: TaskObjective[Any] = build(node, "classifier", **options)
    return objective


def _warn_of_large_batches(
    stages: Mapping[str, Stage], used: Mapping[str, Auxiliary], counts: Mapping[str, int]
) -> None:
    """Warn where a batch holds examples several times, as the paper's do on small data.

    Args:
        stages: the stages by name.
        used: the auxiliary tasks by name.
        counts: number of training examples of each task, the end task included.
    """
    for name, stage in stages.items():
        module_type = module_class(stage)
        tasks = [END_TASK] if module_type.trains_end_task else []
        tasks += auxiliaries_of(stage, used)
        small = [f"{task} {counts[task]:,}" for task in tasks if counts[task] < stage.batch_size]
        if small:
            log.warning(
                "method.stages.%s.batch_size=%s is more than there are examples (%s), so that a "
                "batch holds some of them several times; a smaller batch_size avoids that",
                name,
                stage.batch_size,
                ", ".join(small),
            )


def _used_auxiliaries(config: DictConfig, stages: Mapping[str, Stage]) -> dict[str, Auxiliary]:
    """Return the auxiliary tasks that some stage trains; the texts of others are not read."""
    settings = named_auxiliaries(config)
    used: set[str] = set()
    left_out: set[str] = set()
    for stage_name, stage in stages.items():
        if module_class(stage).trains_auxiliaries:
            asked = auxiliaries_of(stage, settings)
            chosen = [name for name in asked if not settings[name].left_out]
            left_out.update(set(asked) - set(chosen))
            if asked and not chosen:
                raise UserError(
                    f"stage {stage_name} of method {config.method.name} needs unlabelled text: "
                    f"auxiliary.{asked[0]}.path=FILE or FOLDER; method=finetune and method=tapt do "
                    "without (+experiment=custom_finetune, +experiment=custom_tapt)"
                )
            if not chosen:
                kinds = {
                    "task": "an auxiliary task on the task's own text; e.g. auxiliary=tapt",
                    "domain": "unlabelled text beside the task's own; e.g. auxiliary=dapt "
                    "auxiliary.dapt.path=FILE or FOLDER",
                }
                needed = kinds.get(stage.auxiliaries, "an auxiliary task; e.g. auxiliary=tapt")
                raise UserError(
                    f"stage {stage_name} of method {config.method.name} needs {needed} (images: "
                    "auxiliary=other_classes)"
                )
            used.update(chosen)
    for name in sorted(left_out):
        log.warning("auxiliary %s is left out: no text was given (auxiliary.%s.path)", name, name)
    for name, auxiliary in settings.items():
        if name in used or not isinstance(auxiliary, TextAuxiliary) or not auxiliary.optional:
            continue
        for option in ("path", "hub"):
            if getattr(auxiliary, option):
                log.warning(
                    "auxiliary.%s.%s is not read: method=%s does not train on it",
                    name, option, config.method.name,
                )  # fmt: skip
    found = {name: auxiliary for name, auxiliary in settings.items() if name in used}
    _warn_of_unread_size(found)
    return found


def _warn_of_unread_size(used: Mapping[str, Auxiliary]) -> None:
    """Warn where the command line gives `auxiliary.size`, and nothing that is trained takes it.

    Experiments set it for whatever auxiliary tasks are chosen, so that its value tells nothing.
    """
    given = as_given(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []
    if "auxiliary.size" not in map(option_of, given):
        return
    domain = [name for name, auxiliary in used.items() if auxiliary.kind == "domain"]
    if any(getattr(used[name], "size", None) is None for name in domain):
        return
    own = f"auxiliary.{domain[0]}.size is given instead" if domain else ""
    log.warning("auxiliary.size is not read: %s", own or "the run trains on no domain text")


def auxiliary_context(
    config: DictConfig,
    encoder: Encoder,
    *,
    end_task: EndTask | None = None,
    train_examples: int = 0,
    held_out: HeldOutText | None = None,
) -> AuxiliaryContext:
    """Return the context in which auxiliary tasks are read, by the options of `auxiliary`."""
    return AuxiliaryContext(
        end_task=end_task,
        encoder=encoder,
        train_examples=train_examples,
        default_size=config.auxiliary.get("size", 1),
        seed=int(config.auxiliary.get("seed", 0)),
        cache_dir=Path(config.cache_dir).expanduser(),
        held_out=held_out,
        decontaminate=bool(config.auxiliary.get("decontaminate", False)),
    )


def named_auxiliaries(config: DictConfig) -> dict[str, Auxiliary]:
    """Return all auxiliary tasks in the config, whether or not a stage trains them.

    Raises:
        UserError: an entry of `auxiliary` is not a task, or has a name that is not allowed.
    """
    found: dict[str, Auxiliary] = {}
    for key, node in config.auxiliary.items():
        name, is_task = str(key), isinstance(node, DictConfig) and "_target_" in node
        if is_task:
            check_task_name(name)
            entry: Any = build(node, f"auxiliary.{name}")
            members = getattr(entry, "members", None)
            found |= {name: entry} if members is None else members(name)
        elif name not in SETTINGS:
            raise UserError(
                f"auxiliary.{name} is neither a task nor one of {', '.join(SETTINGS)}; a task is "
                f"added by +auxiliary_task@auxiliary.{name}=mlm_domain auxiliary.{name}.path=FILE"
            )
    for name in found:
        check_task_name(name)
    return found


def auxiliaries_of(stage: Stage, settings: Mapping[str, Auxiliary]) -> list[str]:
    """Return the names of the auxiliary tasks that `stage` trains, in the config's order."""
    if not module_class(stage).trains_auxiliaries:
        return []
    return [name for name, a in settings.items() if stage.auxiliaries in ("all", a.kind)]


def mixes_with_end_task(module_type: Any) -> bool:
    """Return whether a module's class trains the end task together with auxiliary tasks.

    Only then are tasks weighted; auxiliary tasks alone count equally.
    """
    return bool(module_type.trains_end_task and module_type.trains_auxiliaries)


def _check_weighting(
    config: DictConfig,
    stages: Mapping[str, Stage],
    used: Mapping[str, Auxiliary],
    train_examples: int,
) -> None:
    """Check that the weighting, the sampling and the meta head of each stage are possible.

    Raises:
        UserError: they are not, or an option of the weighting is invalid.
    """
    together = any(mixes_with_end_task(module_class(stage)) for stage in stages.values())
    if not together and not _makes(config.weighting, Uniform):
        log.warning("weighting is not read: method=%s does not mix tasks", config.method.name)
    for stage_name, stage in stages.items():
        module_type, option = module_class(stage), f"method.stages.{stage_name}.sampled"
        names = auxiliaries_of(stage, used)
        if not mixes_with_end_task(module_type):
            check_sampling(Uniform([END_TASK, *names]), len(names), stage.sampled, option)
            continue
        weighting: Weighting = build(config.weighting, "weighting", task_names=[END_TASK, *names])
        check_weighting(weighting)
        check_sampling(weighting, len(names), stage.sampled, option)
        needs = weighting.needs
        if (needs.meta_gradient or needs.second_batches) and stage.freeze_body:
            raise UserError(
                "freeze_body=true leaves nothing for this weighting to weigh; use "
                "weighting=uniform, or freeze_body=false"
            )
        if needs.meta_gradient and not module_type.has_meta_head:
            raise UserError(
                "this weighting needs the meta-gradient, which "
                f"method={config.method.name} does not compute; use method=meta_tartan, or "
                "another weighting"
            )
        if module_type.has_meta_head:
            warn_of_unlearned_weights(config.method.name, weighting)
        apart = stage.meta_head.extra_examples if needs.meta_gradient else 0
        if apart and stage.batch_size + apart > train_examples:
            raise UserError(
                f"method.stages.{stage_name}.meta_head.examples_from=rest needs {apart} training "
                f"examples beside each batch of {stage.batch_size}, but there are only "
                f"{train_examples}; use a smaller batch_size, or examples_from=batch"
            )
