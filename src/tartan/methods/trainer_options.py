"""Checks a Trainer's options, and computes the length of its training."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from weakref import WeakSet

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import (
    BaseFinetuning,
    BatchSizeFinder,
    GradientAccumulationScheduler,
    LearningRateFinder,
    ModelCheckpoint,
)
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn

from tartan.errors import UserError
from tartan.evaluation.monitor import Monitor
from tartan.methods.precision import TRAINED
from tartan.methods.strategy import ReplicaStrategy, ShardStrategy
from tartan.methods.subclass_hooks import remarks_on_callback

log = logging.getLogger(__name__)
EPOCHS_WHERE_NONE_ARE_GIVEN = 1000
"""Number of epochs that Lightning trains for without steps, epochs or a time limit."""

_OF_A_CHECKPOINT = (
    "monitor", "mode", "save_top_k", "save_on_exception", "save_weights_only",
    "_every_n_train_steps", "_train_time_interval", "_every_n_epochs", "_save_on_train_epoch_end",
)  # fmt: skip
"""Attributes of `ModelCheckpoint` with the arguments that decide which checkpoints it keeps."""
_CONFIGURED: WeakSet[ModelCheckpoint] = WeakSet()
"""Callbacks that do not say what to keep, which keep the best checkpoint on dev."""
_TUNING = {
    LearningRateFinder: "the rates are those of for_data(lr=...) or optimisation=..., of a run "
    "method.stages.STAGE.optimisation.body_lr and end_head_lr",
    BatchSizeFinder: "the batch size is TartanData(batch_size=...), and what fits memory is "
    'sizes={"micro_batch_size": ...}, of a run method.stages.STAGE.batch_size and micro_batch_size',
    BaseFinetuning: "parameter groups are fixed when the training begins; freeze parameters by "
    "requires_grad_(False) before it",
    GradientAccumulationScheduler: "a step's gradients are those of whole batches, in parts that "
    "fit memory; use batch_size and micro_batch_size",
}
"""Callbacks that change what they cannot change here, and what to use instead."""


def check_trainer(trainer: pl.Trainer) -> None:
    """Check that the Trainer's options work with the module.

    Raises:
        UserError: an option does not; the message names it and what to use instead.
    """
    is_training = trainer.state.fn == TrainerFn.FITTING
    if is_training:
        _check_optimisation(trainer)
    check_callbacks(trainer.callbacks)
    if any(getattr(logger, "_log_graph", False) for logger in trainer.loggers):
        raise UserError(
            "TensorBoardLogger(log_graph=True): the module's graph cannot be traced; omit log_graph"
        )
    _check_precision(str(trainer.precision), is_training)
    if not isinstance(trainer.strategy, SingleDeviceStrategy | ReplicaStrategy | ShardStrategy):
        raise UserError(
            f"Trainer(devices=..., strategy=...): {type(trainer.strategy).__name__} would sum the "
            "gradient of a whole loss, not those of single tasks; use devices=1, or "
            "strategy=ReplicaStrategy() (also in a notebook) or ShardStrategy() from "
            "tartan.methods.strategy"
        )
    if is_training:
        _check_length(trainer)


def _check_precision(precision: str, is_training: bool) -> None:
    taken = TRAINED if is_training else (*TRAINED, "16-mixed")
    if precision in taken:
        return
    if not is_training:
        why = "Lightning would round the module's own weights to 16 bits, and leave them so"
    elif precision == "16-mixed":
        why = "gradients of single tasks are computed by hand, without a scaler"
    else:
        why = "weights in 16 bits are not supported, of which small updates would be lost"
    raise UserError(f"Trainer(precision={precision!r}): {why}; use one of {', '.join(taken)}")


def _check_optimisation(trainer: pl.Trainer) -> None:
    """Check options that Lightning refuses with manual optimisation, to say what to use instead."""
    if trainer.accumulate_grad_batches != 1:
        raise UserError(
            f"Trainer(accumulate_grad_batches={trainer.accumulate_grad_batches}): a step's "
            "gradients are those of whole batches, in parts that fit memory; use "
            'TartanData(batch_size=..., sizes={"micro_batch_size": ...})'
        )
    if trainer.gradient_clip_val is not None:
        raise UserError(
            f"Trainer(gradient_clip_val={trainer.gradient_clip_val}): the mixed gradient is "
            "clipped by the module; use for_data(optimisation=Optimisation(clip_norm=...))"
        )


def check_callbacks(callbacks: Iterable[pl.Callback]) -> None:
    """Check that the callbacks work with the modules.

    Raises:
        UserError: one does not.
    """
    for callback in callbacks:
        for kind, instead in _TUNING.items():
            if isinstance(callback, kind):
                raise UserError(f"{kind.__name__} does not work here: {instead}")
        if isinstance(callback, ModelCheckpoint) and callback._train_time_interval is not None:
            raise UserError(
                "ModelCheckpoint(train_time_interval=...): with manual optimisation, Lightning "
                "writes no such checkpoints; use every_n_train_steps=..., or ResumePoints from "
                "tartan.methods.resume_points, which writes one every few minutes"
            )
        for remark in remarks_on_callback(callback):
            log.warning(remark)


def _check_length(trainer: pl.Trainer) -> None:
    steps, epochs = trainer.max_steps, trainer.max_epochs
    if steps == -1 and epochs in (-1, None, EPOCHS_WHERE_NONE_ARE_GIVEN):
        raise UserError(
            "give the Trainer max_steps=N or max_epochs=N, if only as an upper bound: the learning "
            "rate rises and falls over the whole training (max_time alone, and 1000 epochs, which "
            "are Lightning's default, do not say how long that is)"
        )


def planned_steps(trainer: pl.Trainer, epoch_steps: int | None) -> int:
    """Return the optimiser steps of the training, the lower of the Trainer's two bounds.

    `trainer.estimated_stepping_batches` would ask for the loaders, and drop the state that a
    checkpoint has for them.

    Args:
        trainer: the Trainer.
        epoch_steps: steps of an epoch, before the Trainer limits it; None if unknown.

    Raises:
        UserError: the length of an epoch is needed and unknown; or the Trainer has trained before,
            and its next training would begin in the middle of its schedule.
    """
    if trainer.global_step and not trainer.ckpt_path:
        raise UserError(
            f"this Trainer has taken {trainer.global_step} steps and would go on counting from "
            "them; make a new Trainer(...) for another training, or go on from a checkpoint: "
            'fit(..., ckpt_path="last")'
        )
    steps, epochs = int(trainer.max_steps), trainer.max_epochs
    if epochs in (-1, None):
        return steps
    if epoch_steps is None:
        raise UserError("training takes the batches of TartanData: fit(module, datamodule=data)")
    limit = trainer.limit_train_batches
    whole = min(epoch_steps, limit) if isinstance(limit, int) else int(epoch_steps * limit)
    by_epochs = max(whole, 1) * int(epochs)
    return by_epochs if steps == -1 else min(steps, by_epochs)


def keep_best(trainer: pl.Trainer, monitor: Monitor | None) -> None:
    """Make the only checkpoint callback keep the best on dev, if it does not say what to keep.

    Such a one is Lightning's own, which it adds where there is none, or a `ModelCheckpoint()`,
    perhaps with a folder or with `save_last`.

    Args:
        trainer: the Trainer.
        monitor: the metric by which a checkpoint is chosen; None where nothing is evaluated.
    """
    kept = [c for c in trainer.callbacks if isinstance(c, ModelCheckpoint)]
    if monitor is None or not trainer.limit_val_batches or len(kept) != 1:
        return
    (callback,) = kept
    wanted = (f"dev/{monitor.name}", monitor.mode)
    if _keeps_anything(callback):
        _CONFIGURED.add(callback)
    elif callback not in _CONFIGURED or (callback.monitor, callback.mode) == wanted:
        return
    callback.monitor, callback.mode = wanted
    callback.kth_value = torch.tensor(-torch.inf if monitor.mode == "max" else torch.inf)
    callback.best_k_models, callback.kth_best_model_path = {}, ""
    callback.best_model_path, callback.best_model_score = "", None


def _keeps_anything(checkpoint: ModelCheckpoint) -> bool:
    """Return whether a callback keeps what `ModelCheckpoint()` keeps, wherever it writes it."""
    default = ModelCheckpoint()
    return type(checkpoint) is ModelCheckpoint and all(
        getattr(checkpoint, option) == getattr(default, option) for option in _OF_A_CHECKPOINT
    )
