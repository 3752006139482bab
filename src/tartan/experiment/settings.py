"""Declares the options of a run, which are checked before anything is imported or read for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Le
from pydantic import ConfigDict

from tartan.methods.precision import Precision
from tartan.methods.stage import Stage
from tartan.settings import STRICT, Checked, Count, Natural, NonNegative, Text

Nodes = Mapping[str, Mapping[str, Any]]


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
    micro_batch_size: Count
    packed: bool
    gradient_checkpointing: bool
    evaluation_batch_size: Count
    max_steps: Count | None
    evaluate_test: bool
    resume: bool
    verbose: bool
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
