"""A Lightning user's data, modules and Trainer, small enough for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

from tartan import TartanData
from tartan.methods.module import TaskMixing
from tests.conftest import DEVICE
from tests.in_process import State, copied

AUXILIARIES = ("tapt", "dapt")
EPOCH = 6
"""Steps of an epoch: 48 training examples in batches of 8."""


def toy_data(data_dir: Path, cache_dir: Path, **more: Any) -> TartanData:
    """The toy task with both auxiliary tasks, in batches of 8, for the tiny encoder."""
    own: dict[str, Any] = {
        **{split: data_dir / "toy" / f"{split}.jsonl" for split in ("train", "dev", "test")},
        "auxiliaries": {"tapt": "task", "dapt": data_dir / "corpus.txt"},
        "encoder": "tiny",
        "batch_size": 8,
        "max_length": 32,
        "name": "toy",
        "cache_dir": cache_dir,
    }
    return TartanData(**{**own, **more})


def trainer(folder: Path, **options: Any) -> pl.Trainer:
    """Lightning's own Trainer, without its output; nothing else of it is changed."""
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    return pl.Trainer(default_root_dir=folder, accelerator=DEVICE.type, **{**quiet, **options})


class Steps(pl.Callback):
    """What happened: which steps were seen, which rates were used, where dev was evaluated."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.rates: list[float] = []
        self.evaluated: list[int] = []

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        self.steps.append(batch.step)
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.evaluated.append(trainer.global_step)


def fitted(module: TaskMixing, data: TartanData, folder: Path, **options: Any) -> Steps:
    """What happened in a training."""
    seen = Steps()
    callbacks = [seen, *options.pop("callbacks", [])]
    resume = options.pop("ckpt_path", None)
    trainer(folder, callbacks=callbacks, **options).fit(module, datamodule=data, ckpt_path=resume)
    return seen


def state_of(module: TaskMixing) -> State:
    """Its parameters and buffers on the CPU."""
    with torch.no_grad():
        return copied(module)
