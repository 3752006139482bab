"""Declares the options of a run; they are checked before anything is read for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from annotated_types import Le
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import ConfigDict

from tartan.errors import UserError
from tartan.methods.stage import Stage
from tartan.methods.trainer import Precision
from tartan.runs.folder import as_given, option_of
from tartan.settings import STRICT, Checked, Count, Natural, NonNegative, Text, check_node, typed

Nodes = Mapping[str, Mapping[str, Any]]

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


def run_settings(config: DictConfig, beside: Collection[str] = ()) -> RunSettings:
    """Return the options of a run, all of them checked, those of its classes too.

    Options of the command that are none of a run's are named in `beside`.
    """
    read = {field.name for field in fields(RunSettings)} | {*beside}
    read |= set(re.findall(r"\$\{(\w+)", OmegaConf.to_yaml(config)))  # what others refer to
    for name in map(str, config):
        if name not in read:
            raise UserError(f"there is no option {name}, and no option refers to it")
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
