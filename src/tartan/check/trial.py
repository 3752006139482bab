"""Trains each stage of a run for a few steps, and scales their time to the whole run."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import torch
from omegaconf import DictConfig

from tartan.data.prepared import Prepared
from tartan.encoders.base import frozen
from tartan.methods.cost import now, peak_of_device
from tartan.methods.stage import Stage
from tartan.methods.stage_outcome import memory_advice
from tartan.methods.trainer import resolve_precision
from tartan.runs.run import StageChain

STEPS = 4
"""Number of training steps of a trial; the first warms up and is not counted."""
MICRO_BATCHES = 2
"""Size of a trial's batches, in micro-batches: time is proportional to it, memory is not."""


class StepEnds(pl.Callback):
    """Records when each training step ends [s]."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *_: Any) -> None:
        self.ends.append(now(pl_module.device))


def estimate_stages(
    config: DictConfig, stages: Mapping[str, Stage], prepared: Prepared
) -> pd.DataFrame:
    """Train each stage for a few steps, which changes the encoder.

    The columns are `steps`, unless patience ends the stage; `batch` size; `step_time` [s];
    `seconds` of all steps; `GiB`, peak memory of the process, or of the tensors on a GPU.
    """
    accelerator = str(config.trainer.accelerator)
    precision: Any = resolve_precision(config.trainer.precision, accelerator)
    chain = StageChain(config, Path(config.run.folder), prepared, stages)
    micro = chain.data().micro_batch_size(accelerator)
    rows = {}
    for name, stage in stages.items():
        largest = max(MICRO_BATCHES * micro, stage.sampled or 1)
        sizes = [min(size, largest) for size in (stage.batch_size, stage.meta_batch_size)]
        config.run.stage = name
        module, data = chain.build(
            name, replace(stage, batch_size=sizes[0], meta_batch_size=sizes[1])
        )
        times = StepEnds()
        trainer = pl.Trainer(
            accelerator=accelerator,
            devices=1,
            precision=precision,
            max_steps=STEPS,
            limit_val_batches=0,
            callbacks=[times],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        freezing = frozen(prepared.encoder.body) if stage.freeze_body else nullcontext()
        with freezing, memory_advice("the measured steps"):
            trainer.fit(module, datamodule=data)
        step = median(np.diff(times.ends)) * stage.batch_size / sizes[0]
        steps, _ = stage.length(*prepared.counts(module.batch_needs.tasks))
        rows[name] = {
            "steps": steps,
            "batch": stage.batch_size,
            "step_time": step,
            "seconds": steps * step,
            "GiB": peak_of_device(torch.device(module.device)) / 2**30,
        }
    return pd.DataFrame.from_dict(rows, orient="index")
