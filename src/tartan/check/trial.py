"""Trains each stage of a run for three steps, and scales their time to the whole run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import lightning.pytorch as pl
import pandas as pd
import torch
from omegaconf import DictConfig

from tartan.data.prepared import Prepared
from tartan.encoders.base import frozen
from tartan.methods.cost import now, peak_of_device
from tartan.methods.fit import memory_advice
from tartan.methods.stage import Stage
from tartan.methods.trainer import resolve_precision
from tartan.runs.run import StageChain

STEPS = 3
"""Number of training steps of a trial; the first warms up and is not counted."""
MICRO_BATCHES = 2
"""Size of a trial's batches, in micro-batches: time is proportional to it, memory is not."""
EVALUATION_BATCHES = 2


class StepTimes(pl.Callback):
    """Records the time of each training step, and of the evaluation of an example [s]."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.evaluation = 0.0
        self.examples = 0
        self._began = 0.0

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, *_: Any) -> None:
        self._began = now(pl_module.device)

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *_: Any) -> None:
        self.steps.append(now(pl_module.device) - self._began)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._began = now(pl_module.device)

    def on_validation_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, *_: Any
    ) -> None:
        self.evaluation = now(pl_module.device) - self._began
        self.examples += batch.examples


def estimate_stages(
    config: DictConfig, stages: Mapping[str, Stage], prepared: Prepared
) -> pd.DataFrame:
    """Train each stage for a few steps, which changes the encoder.

    The columns are `steps`, unless patience ends the stage; `batch` size; `step_time` [s];
    `seconds` of all steps and evaluations on dev; `GiB`, peak memory of the process, or of the
    tensors on a GPU.
    """
    chain = StageChain(config, Path(config.run.folder), prepared, stages)
    rows = {}
    for name, stage in stages.items():
        largest = max(MICRO_BATCHES * int(config.micro_batch_size), stage.sampled or 1)
        small = replace(
            stage,
            batch_size=min(stage.batch_size, largest),
            meta_batch_size=min(stage.meta_batch_size, largest),
        )
        config.run.stage = name
        module, data = chain.build(name, small)
        times = StepTimes()
        freezing = frozen(prepared.encoder.body) if stage.freeze_body else nullcontext()
        with freezing, memory_advice("the measured steps"):
            _trainer(config, times).fit(module, datamodule=data)
        step = median(times.steps[1:] or times.steps) * stage.batch_size / small.batch_size
        evaluation = len(prepared.splits.dev) * times.evaluation / max(1, times.examples)
        steps, interval = stage.length(*prepared.counts(module.batch_needs.tasks))
        rows[name] = {
            "steps": steps,
            "batch": stage.batch_size,
            "step_time": step,
            "seconds": steps * step + math.ceil(steps / interval) * evaluation,
            "GiB": peak_of_device(torch.device(module.device)) / 2**30,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _trainer(config: DictConfig, times: StepTimes) -> pl.Trainer:
    accelerator = str(config.trainer.accelerator)
    precision: Any = resolve_precision(config.trainer.precision, accelerator)
    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    return pl.Trainer(
        accelerator=accelerator,
        devices=1,
        precision=precision,
        max_steps=STEPS,
        val_check_interval=STEPS,
        check_val_every_n_epoch=None,
        limit_val_batches=EVALUATION_BATCHES,
        num_sanity_val_steps=0,
        callbacks=[times],
        default_root_dir=config.run.folder,
        **quiet,
    )
