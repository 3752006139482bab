"""Writes and reads checkpoints, also those that anybody may have written."""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint
from lightning.pytorch.trainer.states import TrainerFn

from tartan.data.task_data import TaskData
from tartan.errors import UserError
from tartan.evaluation.monitor import Monitor
from tartan.files import write_durably
from tartan.methods.launch import is_main_process
from tartan.methods.strategy import Agreement

log = logging.getLogger(__name__)

_CHANGEABLE = ("encoder", "metrics", "columns", "held_out")
"""Arguments that may change from one fit to the next; an encoder's weights have to fit anyway."""


class DurableCheckpointIO(TorchCheckpointIO):
    """Writes Lightning's checkpoints so that they survive a power cut; there is no half of one."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        write_durably(Path(path), lambda scratch: torch.save(checkpoint, scratch))

    def load_checkpoint(
        self, path: Any, map_location: Any = "cpu", weights_only: bool | None = None
    ) -> dict[str, Any]:
        return load_checkpoint(Path(path), map_location)


def load_checkpoint(path: Path, map_location: Any = "cpu") -> dict[str, Any]:
    """Load plain values and tensors from a checkpoint; no other objects are built."""
    try:
        if not is_whole(path):
            raise RuntimeError("it is damaged")
        content: dict[str, Any] = torch.load(path, map_location=map_location, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError) as error:
        raise UserError(
            f"{path} holds more than numbers and tensors, or is damaged, and is not read; remove "
            f"{path.parent}, and the same command trains that part again"
        ) from error
    return content


def is_whole(path: Path) -> bool:
    """Return whether a file agrees with its checksums (zip's), which `torch.load` ignores."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        return False


def data_settings(data: TaskData | None) -> dict[str, Any]:
    """Return what of the data changes a training, for its checkpoints."""
    if data is None:
        return {}
    return {
        "TartanData.seed": data.seed,
        "TartanData.batch_size": data.sizes.batch_size,
        "TartanData.sizes.meta_batch_size": data.sizes.meta_batch_size,
        **data.prepared.fingerprints,
    }


def check_same_training(
    checkpoint: Mapping[str, Any], arguments: Mapping[str, Any], data: TaskData | None
) -> None:
    """Check that a training goes on from a checkpoint with the settings and data it began with."""
    before = {**checkpoint["progress"]["data"], **checkpoint["hyper_parameters"]}
    now = {**data_settings(data), **arguments}
    changes = [
        f"{name} was {before.get(name)!s:.200}, is {now.get(name)!s:.200}"
        for name in {**before, **now}
        # as text that does not tell tuples from lists, but the order of tasks
        if name not in _CHANGEABLE
        and json.dumps(before.get(name), default=str) != json.dumps(now.get(name), default=str)
    ]
    if changes:
        raise UserError(
            f"the checkpoint's training had other settings or data: {'; '.join(changes)}; give the "
            "same, or start anew without ckpt_path (with ResumePoints, in another folder)"
        )


class BestWeights(Checkpoint):
    """Writes `best-STEP.ckpt` after each evaluation on dev that is the best so far.

    The file of an earlier best stays until a resume point knows of a better one. Files of steps
    after the resume point are removed when a stage resumes: on a machine that does not repeat
    roundings, they belong to another run.

    Args:
        folder: the stage's checkpoint folder.
        monitor: the metric that decides which evaluation is best.

    Attributes:
        evaluations: step and metrics of every evaluation.
    """

    def __init__(self, folder: str | Path, monitor: Monitor) -> None:
        self._folder, self._monitor = Path(folder), monitor
        self.evaluations: list[tuple[int, dict[str, float]]] = []
        self._at_last_point: Path | None = None

    @property
    def best_model_path(self) -> str:
        """The best weights' file, for Lightning's `ckpt_path="best"`; empty without any."""
        return str(self._best_file() or "")

    def best(self) -> tuple[int, dict[str, float]]:
        """Return step and metrics of the best evaluation, the earliest of equals."""
        if not self.evaluations:
            raise UserError("the training ended before any evaluation on dev: there is no best one")
        monitor = self._monitor
        return max(self.evaluations, key=lambda one: (monitor.merit(one[1][monitor.name]), -one[0]))

    def series(self) -> list[tuple[int, float]]:
        return [(step, values[self._monitor.name]) for step, values in self.evaluations]

    def file(self, step: int) -> Path:
        return self._folder / f"best-{step:08d}.ckpt"

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        for path in self._files() if trainer.is_global_zero else ():
            if path > self.file(trainer.global_step):
                path.unlink()
        self._at_last_point = self._best_file()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or trainer.state.fn != TrainerFn.FITTING:
            return
        values = {
            name.removeprefix("dev/"): float(value)
            for name, value in trainer.callback_metrics.items()
            if name.startswith("dev/")
        }
        self.evaluations.append((trainer.global_step, values))
        if self.best()[0] == trainer.global_step:
            trainer.save_checkpoint(self.file(trainer.global_step), weights_only=True)

    def point_taken(self) -> None:
        """Remove files that are not the best of either of the newest two resume points."""
        needed = (self._at_last_point, self._best_file())
        for path in self._files():
            if path not in needed:
                path.unlink()
        self._at_last_point = self._best_file()

    def state_dict(self) -> dict[str, Any]:
        return {"evaluations": [[step, values] for step, values in self.evaluations]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.evaluations = [(step, values) for step, values in state_dict["evaluations"]]

    def _best_file(self) -> Path | None:
        return self.file(self.best()[0]) if self.evaluations else None

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("best-*.ckpt"))


def keep_best(trainer: pl.Trainer, monitor: str, mode: str) -> None:
    """Make the only checkpoint callback keep the best on dev, if it does not say what to keep."""
    checkpoints = [c for c in trainer.callbacks if isinstance(c, ModelCheckpoint)]
    if len(checkpoints) != 1 or type(checkpoints[0]) is not ModelCheckpoint:
        return
    (callback,) = checkpoints
    after_evaluations = not (callback._every_n_train_steps or callback._save_on_train_epoch_end)
    if callback.monitor is None and callback.save_top_k == 1 and after_evaluations:
        callback.monitor, callback.mode = monitor, mode
        callback.kth_value = torch.tensor(-torch.inf if mode == "max" else torch.inf)


class Interrupted(SystemExit):
    """Raised where a signal ends the run after a checkpoint; exit code 128 + its number."""

    def __init__(self, signum: int, step: int) -> None:
        super().__init__(128 + signum)
        self.signum, self.step = signum, step


class ResumePoints(Checkpoint):
    """Writes a checkpoint at intervals, and when a signal asks the run to end.

    A resume point is only written where training can continue exactly: after a step that no
    evaluation follows, or after the evaluation. This callback has to be the last, so that the
    others' states are those after the step. The newest two points are kept. All processes of a run
    write a point together, and end together, whichever of them got the signal. With a Trainer that
    has `plugins=[DurableCheckpointIO()]`, points survive a power cut.

    Args:
        folder: folder of the stage's resume points.
        minutes: time between two points; 0 writes one after every step [minutes].
        evaluate_every: optimiser steps between evaluations; None in stages without [steps].
        after: called by the main process when a point has been written.
    """

    best_model_path = ""
    """Empty, as resume points are no best weights: with `ckpt_path="best"` Lightning says so."""

    def __init__(
        self,
        folder: str | Path,
        minutes: float,
        evaluate_every: int | None = None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder, self._seconds, self._every = Path(folder), 60 * minutes, evaluate_every
        self._after = after
        self._last = time.monotonic()
        self._asked: int | None = None
        self._agreement = Agreement()
        self._steps = 0
        self._soon = False
        self._handlers: dict[int, Any] = {}
        self._submitit: tuple[int, Callable[..., Any]] | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._agreement, self._steps = pl_module.agreement, pl_module.planned_steps
        # Lightning's own exchange in every step, for which a GPU's host would wait
        trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None
        if threading.current_thread() is not threading.main_thread():
            return
        self._submitit = _submitit_handler()
        signals = {signal.SIGTERM, signal.SIGINT}
        if callable(signal.getsignal(signal.SIGUSR1)):  # Lightning has found SLURM
            signals.add(signal.SIGUSR1)
        if self._submitit is not None:
            signals.add(signal.Signals(self._submitit[0]))
        self._handlers = {each: signal.signal(each, self._on_signal) for each in signals}

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        evaluates = self._every is not None and trainer.global_step % self._every == 0
        if not evaluates:
            self._take(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.sanity_checking:
            self._take(trainer)

    def on_train_end(self, *args: Any) -> None:
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        self._handlers = {}

    on_exception = on_train_end

    def _take(self, trainer: pl.Trainer) -> None:
        """Write a point if it is time, unless the stage ends."""
        if trainer.should_stop or trainer.global_step >= self._steps:
            self._requeue()
            return  # the stage's outcome is about to be written; then comes `leave_if_asked`
        due = self._soon or (
            trainer.is_global_zero and time.monotonic() - self._last >= self._seconds
        )
        # signal number times two, plus one if a point is due: one exchange for both
        decided = self._agreement.highest(2 * (self._asked or 0) + due)
        if not decided:
            return
        asked = decided // 2  # a signal that came since then waits for the next decision
        before = points(self._folder)
        trainer.save_checkpoint(self._folder / f"{trainer.global_step:08d}.ckpt", False)
        if trainer.is_global_zero:
            for old in before[:-1]:
                old.unlink()
            self._after()
        self._last, self._soon = time.monotonic(), False
        if asked:
            self._asked = asked
            self._requeue()
            self.leave_if_asked(trainer.global_step)

    def leave_if_asked(self, step: int) -> None:
        """End the run if a signal came after the last point; the outcome is stored by now."""
        asked = self._agreement.highest(self._asked or 0)
        if not asked:
            return
        if self._submitit is not None and asked == self._submitit[0]:
            self._submitit[1](asked, None)  # puts the job back in its queue, and exits
        raise Interrupted(asked, step)

    def _requeue(self) -> None:
        """Let Lightning ask the scheduler to requeue the job, if that was asked."""
        handler = self._handlers.get(signal.SIGUSR1)
        submitits = self._submitit is not None and self._submitit[0] == signal.SIGUSR1
        if self._asked == signal.SIGUSR1 and callable(handler) and not submitits:
            handler(self._asked, None)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if signum == signal.SIGTERM and self._submitit is not None:
            # announces a signal to requeue, or the end; submitit itself lets it pass
            self._soon = True
        elif self._asked is not None:
            raise KeyboardInterrupt  # asked twice: do not wait for the step
        else:
            self._asked = signum


def _submitit_handler() -> tuple[int, Callable[..., Any]] | None:
    """Return the signal on which submitit requeues its job, and its handler; None elsewhere."""
    if "SUBMITIT_EXECUTOR" not in os.environ:
        return None
    name = os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")  # submitit's own variable and default
    signum = getattr(signal, f"SIG{name}", None)
    handler = None if signum is None else signal.getsignal(signum)
    return (int(signum), handler) if signum is not None and callable(handler) else None


def points(folder: Path) -> list[Path]:
    """Return the resume points, named by their steps alone, oldest first, incomplete ones too."""
    return sorted(path for path in folder.glob("*.ckpt") if path.stem.isdigit())


def newest_point(folder: str | Path) -> Path | None:
    """Return the newest complete resume point, or None; remove incomplete ones with a warning."""
    for point in reversed(points(Path(folder))):
        if is_whole(point):
            return point
        log.warning("%s is incomplete or damaged; continuing from the one before it", point)
        if is_main_process():
            point.unlink()
    return None
