"""Checks the folders and the machine of a run before anything is read."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lightning.pytorch.callbacks import LearningRateMonitor
from omegaconf import DictConfig

from tartan.errors import UserError
from tartan.experiment.not_taken import NOT_TAKEN
from tartan.methods.fit import build_trainer, user_callbacks


def check_trainer(config: DictConfig) -> None:
    """Check the options of `trainer` against this machine and this program's way of training.

    Raises:
        UserError: an option does not fit; the message names it.
    """
    settings = config.trainer
    for option in ("accelerator", "precision"):
        if option not in settings:
            raise UserError(f"trainer.{option} is missing; leave out ~trainer.{option}")
    for option, (default, instead) in NOT_TAKEN.items():
        if settings.get(option, default) != default:
            raise UserError(f"trainer.{option} is not used here; set {instead} instead")
    # Lightning and the loggers, which need a folder to be built for, say what else is wrong
    loggers = {"logger": False} if config.run.folder is None else {}
    callbacks = user_callbacks(config)
    build_trainer(config, callbacks, max_steps=1, **loggers)
    for name, callback in zip(config.callbacks, callbacks, strict=True):
        if isinstance(callback, LearningRateMonitor) and not config.logger:
            raise UserError(
                f"callbacks.{name} needs a logger for the rates, and logger=none has none; choose "
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
