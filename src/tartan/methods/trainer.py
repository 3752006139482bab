"""Builds Lightning's Trainer as configured in `conf/trainer/`, and its progress bar."""

import sys
import time
from datetime import timedelta
from typing import Any, Literal

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Checkpoint, ProgressBar, RichProgressBar
from omegaconf import DictConfig, OmegaConf

from tartan.core.device import is_cpu, is_on_cuda
from tartan.methods.checkpoint import DurableCheckpointIO
from tartan.methods.module import TaskMixing
from tartan.methods.strategy import ReplicaStrategy, ShardStrategy
from tartan.settings import build

Precision = Literal["auto", "bf16-mixed", "32-true", "64-true"]
READ_EVERY = 10
"""Number of steps between two readings of the metrics, where reading waits for the device."""
SAY_EVERY_S = 30.0
"""Time between two lines about what remains, where there is no terminal for the bar [s]."""


def build_trainer(
    config: DictConfig, module: TaskMixing, callbacks: list[pl.Callback], **arguments: Any
) -> pl.Trainer:
    """Return Lightning's Trainer for a run's config, whose loggers get the run's options."""
    options: Any = OmegaConf.to_container(config, resolve=True)
    del options["run"]  # which the program itself sets
    module.logged_options, settings = options, config.trainer
    devices, strategy = settings.get("devices", 1), settings.get("strategy", "auto")
    several = devices not in (1, "1") or settings.get("num_nodes", 1) != 1
    if strategy == "ddp" or (strategy == "auto" and several):
        strategy = ReplicaStrategy()
    elif strategy not in ("auto", "single_device"):
        strategy = ShardStrategy()
    bars = any(isinstance(callback, ProgressBar) for callback in callbacks)
    if settings.get("enable_progress_bar", True) and not bars:
        callbacks = [*callbacks, StageProgressBar(config.run.stage)]
    trainer: pl.Trainer = build(
        settings,
        "trainer",
        callbacks=callbacks,
        plugins=[DurableCheckpointIO()],
        precision=resolve_precision(settings.precision, str(settings.accelerator)),
        strategy=strategy,
        use_distributed_sampler=False,  # each split is shared out without doubling examples
        max_epochs=-1,
        num_sanity_val_steps=settings.get("num_sanity_val_steps", 0),
        enable_model_summary=settings.get("enable_model_summary", False),
        enable_checkpointing=any(isinstance(c, Checkpoint) for c in callbacks),
        check_val_every_n_epoch=None,
        **{
            "default_root_dir": str(config.run.folder),
            "logger": [build(node, f"logger.{name}") for name, node in config.logger.items()],
            **arguments,
        },
    )
    return trainer


def resolve_precision(precision: str, accelerator: str) -> str:
    """Return the precision for `auto`: `bf16-mixed` where the processor multiplies it natively."""
    if precision != "auto":
        return precision
    if is_on_cuda(accelerator):
        fast = torch.cuda.is_bf16_supported(False)
    else:
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        names = ("avx512_bf16", "amx_bf16", "bf16")
        fast = accelerator in ("auto", "cpu") and any(map(capabilities.get, names))
    return "bf16-mixed" if fast else "32-true"


class StageProgressBar(RichProgressBar):
    """Lightning's Rich progress bar with the stage's name and each task's loss and weight."""

    def __init__(self, stage: str) -> None:
        super().__init__(leave=True)
        self._stage = stage
        self._shown: dict[str, int | str | float | dict[str, float]] = {}
        self._began = self._said = 0.0
        self._first = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self._began = self._said = time.monotonic()
        self._first = trainer.global_step

    def _get_train_description(self, current_epoch: int) -> str:
        return self._stage

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        super().on_train_batch_end(trainer, *args)
        step, steps, now = trainer.global_step, trainer.max_steps, time.monotonic()
        if self.progress is not None and self.train_progress_bar_id is not None:
            # in a resumed epoch, Lightning's total is at most the steps that are left
            total = min(trainer.num_training_batches, args[-1] + 1 + steps - step)
            self.progress.update(self.train_progress_bar_id, total=total)
        alone = trainer.is_global_zero and not sys.stdout.isatty()
        if alone and now - self._said >= SAY_EVERY_S and step > self._first:
            self._said = now
            left = (now - self._began) / (step - self._first) * (steps - step)
            remains = timedelta(seconds=round(left))
            print(f"{self._stage}: step {step} of {steps}, {remains} left", flush=True)

    def get_metrics(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule
    ) -> dict[str, int | str | float | dict[str, float]]:
        """Return Lightning's metrics; on a GPU they are read now and then, which waits for it."""
        on_cpu = is_cpu(pl_module.device)
        if trainer.training and trainer.global_step % READ_EVERY and self._shown and not on_cpu:
            return self._shown
        self._shown = super().get_metrics(trainer, pl_module)
        self._shown.pop("v_num", None)
        record = pl_module.last_record if isinstance(pl_module, TaskMixing) else None
        if record is not None and not on_cpu:  # where Lightning is not told them
            self._shown |= {n: float(v) for n, v in pl_module.step_metrics(record).items()}
        return self._shown
