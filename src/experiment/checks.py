"""Checks of the whole run before anything is read: numbers, folders, the machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from src.configuration.checks import check_number, check_whole, shown
from src.errors import UserError
from src.methods.fit import build_trainer, users_callbacks
from src.methods.precision import check_accelerator

_MOST_WORKERS = 256
"""Loader processes beyond which a number can only be a slip."""
_NOT_OURS = {
    "gradient_clip_val": (None, "method.stages.STAGE.optimisation.clip_norm"),
    "accumulate_grad_batches": (1, "micro_batch_size and method.stages.STAGE.batch_size"),
    "fast_dev_run": (False, "+debug=fast"),
    "overfit_batches": (0, "max_steps and smaller files"),
    "max_steps": (-1, "max_steps, or method.stages.STAGE.max_steps"),
    "max_epochs": (None, "method.stages.STAGE.max_epochs"),
    "limit_train_batches": (None, "max_steps"),
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
"""Lightning's options that a run does not take: their defaults, and what to use instead."""


def whole_number(config: DictConfig, option: str, least: int) -> int:
    """The option's value, checked.

    Raises:
        UserError: it is not a whole number, or less than `least`.
    """
    return check_whole(OmegaConf.select(config, option), option, least)


def check_numbers(config: DictConfig) -> None:
    """Check the options of the whole run.

    Raises:
        UserError: names the first that is not as it should be.
    """
    for option, least in (
        ("seed", 0),
        ("micro_batch_size", 1),
        ("evaluation_batch_size", 1),
        ("non_finite_patience", 1),
    ):
        whole_number(config, option, least)
    check_number(config.checkpoint_minutes, "checkpoint_minutes", least=0)
    if config.num_workers is not None and whole_number(config, "num_workers", 0) > _MOST_WORKERS:
        raise UserError(f"num_workers must be at most {_MOST_WORKERS}, got {config.num_workers}")
    _true_or_false(config, "packed")
    _true_or_false(config, "resume")
    _true_or_false(config, "gradient_checkpointing")
    _true_or_false(config, "evaluate_test")
    _true_or_false(config, "auxiliary.decontaminate")


def _true_or_false(config: DictConfig, option: str) -> None:
    value = OmegaConf.select(config, option, default=True)
    if not isinstance(value, bool):
        raise UserError(f"{option} must be true or false, got {shown(value)}")


def check_trainer(config: DictConfig) -> None:
    """Check what of `trainer` depends on this machine, or on how training is done here.

    Raises:
        UserError: names the option.
    """
    settings = config.trainer
    check_accelerator(settings.accelerator)
    for option, (default, instead) in _NOT_OURS.items():
        if settings.get(option, default) != default:
            raise UserError(f"trainer.{option} is not used here; set {instead} instead")
    if settings.get("log_every_n_steps") is not None:
        whole_number(config, "trainer.log_every_n_steps", 0)
    _true_or_false(config, "trainer.enable_progress_bar")
    if not settings.get("limit_val_batches", 1.0):
        raise UserError(
            "trainer.limit_val_batches must be more than 0: weights are kept by what they reach on "
            "dev"
        )
    # Lightning and the loggers, which need a folder to be built for, say what else is wrong
    loggers = {"logger": False} if config.run.folder is None else {}
    build_trainer(config, users_callbacks(config), max_steps=1, **loggers)


def writable_folder(config: DictConfig, option: str, named: str | None = None) -> Path:
    """The folder that `option` names, made if need be.

    Args:
        named: what to call the option in a message, if not by its name.

    Raises:
        UserError: it is not the name of a folder, or nothing can be written there.
    """
    value, named = OmegaConf.select(config, option), named or option
    if not isinstance(value, str) or not value:
        raise UserError(f"{named} must name a folder, got {shown(value)}")
    folder = Path(value).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"{named}={value}: cannot write there ({error.strerror}); name another folder"
        ) from error
    return folder
