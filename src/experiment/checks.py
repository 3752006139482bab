"""Checks the folders and the machine of a run before anything is read."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lightning.pytorch.callbacks import LearningRateMonitor
from omegaconf import DictConfig

from src.errors import UserError
from src.methods.fit import build_trainer, user_callbacks
from src.methods.precision import check_accelerator

_NOT_OURS = {
    "gradient_clip_val": (None, "method.stages.STAGE.optimisation.clip_norm"),
    "accumulate_grad_batches": (1, "micro_batch_size and method.stages.STAGE.batch_size"),
    "fast_dev_run": (False, "+debug=fast"),
    "overfit_batches": (0, "max_steps and smaller files"),
    "max_steps": (-1, "max_steps, or method.stages.STAGE.max_steps"),
    "max_epochs": (None, "method.stages.STAGE.max_epochs"),
    "limit_train_batches": (None, "max_steps"),
    # parts of a split, whose scores would stand as those of the whole
    "limit_val_batches": (None, "a smaller file: task.dev"),
    "limit_test_batches": (None, "evaluate_test=false, or a smaller file: task.test"),
    "val_check_interval": (None, "method.stages.STAGE.evaluate_every"),
    "check_val_every_n_epoch": (None, "method.stages.STAGE.evaluate_every"),
    "callbacks": (None, "callbacks=NAME, or +callbacks.NAME._target_=CLASS"),
    "logger": (None, "logger=NAME, or +logger.NAME._target_=CLASS"),
    "default_root_dir": (None, "hydra.run.dir"),
    "enable_checkpointing": (None, "checkpoint_minutes, and callbacks=model_checkpoint"),
    "plugins": (None, "trainer.precision and trainer.strategy"),
    "use_distributed_sampler": (None, "trainer=ddp, which shares out every batch"),
    "reload_dataloaders_every_n_epochs": (0, "seed, of which batches are functions"),
    "barebones": (False, "logger=none with trainer.enable_progress_bar=false"),
}
"""Options of Lightning's Trainer that a run does not take: their defaults, and
what to use instead.
"""


def check_trainer(config: DictConfig) -> None:
    """Check the options of `trainer` against this machine and this program's way of training.

    Raises:
        UserError: an option does not fit; the message names it.
    """
    settings = config.trainer
    check_accelerator(settings.accelerator)
    for option, (default, instead) in _NOT_OURS.items():
        if settings.get(option, default) != default:
            raise UserError(f"trainer.{option} is not used here; set {instead} instead")
    # Lightning and the loggers, which need a folder to be built for, say what else is wrong
    loggers = {"logger": False} if config.run.folder is None else {}
    callbacks = user_callbacks(config)
    build_trainer(config, callbacks, max_steps=1, **loggers)
    for name, callback in zip(config.callbacks, callbacks, strict=True):
        if isinstance(callback, LearningRateMonitor) and not config.logger:
            raise UserError(
                f"callbacks.{name} needs a logger for the rates, and logger=none is none; choose "
                "logger=default, or leave the callback out"
            )


def writable_folder(named: str, option: str) -> Path:
    """Return the folder that `option` names, created if need be.

    Raises:
        UserError: the folder cannot be written.
    """
    folder = Path(named).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"{option}={named}: cannot write there ({error.strerror}); name another folder"
        ) from error
    return folder
