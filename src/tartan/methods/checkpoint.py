"""Writes and reads checkpoints, also those that anybody may have written."""

import json
import logging
import os
import pickle
import signal
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.trainer.states import TrainerFn

from tartan.data.task_data import TaskData
from tartan.errors import UserError
from tartan.evaluation.stage_result import Monitor
from tartan.files import write_durably
from tartan.launch import is_main_process
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
            "same, or start anew without ckpt_path (with StageCheckpoints, in another folder)"
        )


class Interrupted(SystemExit):
    """Raised where a signal ends the run after a checkpoint; exit code 128 + its number."""

    def __init__(self, signum: int, step: int) -> None:
        super().__init__(128 + signum)
        self.signum, self.step = signum, step


class StageCheckpoints(Checkpoint):
    """Writes checkpoints at intervals and on signals, and the weights that are best on dev.

    A resume point is only written where training can continue exactly: after a step that no
    evaluation follows, or after the evaluation. This callback has to be the last, so that the
    others' states are those after the step. The newest two points are kept. All processes of a run
    write a point together, and end together, whichever of them got the signal. With a Trainer that
    has `plugins=[DurableCheckpointIO()]`, points survive a power cut.

    An evaluation that is the best so far writes `best-STEP.ckpt`. The file of an earlier best stays
    until a resume point knows of the better one. Files of steps after the resume point are removed
    when a stage resumes: on a machine that does not repeat roundings, they belong to another run.

    Args:
        folder: the stage's checkpoint folder, whose resume points are in `resume`.
        minutes: time between two points; 0 writes one after every step [minutes].
        evaluate_every: optimiser steps between evaluations [steps].
        monitor: the metric that decides which evaluation is best; None where nothing is evaluated.

    Attributes:
        evaluations: step and metrics of every evaluation.
    """

    def __init__(
        self,
        folder: str | Path,
        minutes: float,
        evaluate_every: int,
        monitor: Monitor | None,
    ) -> None:
        self._folder, self._seconds, self._every = Path(folder), 60 * minutes, evaluate_every
        self._monitor = monitor
        self.evaluations: list[tuple[int, dict[str, float]]] = []
        self._best_at_last_point = ""
        self._agreement, self._steps, self._last = Agreement(), 0, time.monotonic()
        self._asked: int | None = None
        self._soon = False
        self._handlers: dict[int, Any] = {}
        self._requeues: dict[int, Any] = {}  # what puts a job back in its queue on a signal

    @property
    def best_model_path(self) -> str:
        """The best weights' file, for Lightning's `ckpt_path="best"`; empty without any."""
        return str(self.file(self.best()[0])) if self._monitor and self.evaluations else ""

    def best(self) -> tuple[int, dict[str, float]]:
        """Return step and metrics of the best evaluation, the earliest of equals."""
        monitor = self._monitor
        if monitor is None or not self.evaluations:
            raise UserError("the training ended before any evaluation on dev: there is no best one")
        return max(self.evaluations, key=lambda one: (monitor.merit(one[1][monitor.name]), -one[0]))

    def file(self, step: int) -> Path:
        return self._folder / f"best-{step:08d}.ckpt"

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._agreement, self._steps = pl_module.agreement, pl_module.planned_steps
        for path in self._best_files() if trainer.is_global_zero else ():
            if path > self.file(trainer.global_step):
                path.unlink()
        self._best_at_last_point = self.best_model_path
        # Lightning's own exchange in every step, for which a GPU's host would wait
        trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None
        if threading.current_thread() is not threading.main_thread():
            return
        requeuing = [signal.SIGUSR1]  # Lightning's, where it has found SLURM
        if "SUBMITIT_EXECUTOR" in os.environ:
            name = os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")  # submitit's own default
            requeuing.append(signal.Signals[f"SIG{name}"])
        now = {each: signal.getsignal(each) for each in requeuing}
        self._requeues = {each: handler for each, handler in now.items() if callable(handler)}
        self._handlers = {
            each: signal.signal(each, self._on_signal)
            for each in (signal.SIGTERM, signal.SIGINT, *self._requeues)
        }

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        if self._monitor is None or trainer.global_step % self._every:
            self._take(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or trainer.state.fn != TrainerFn.FITTING:
            return
        step, scores = trainer.global_step, trainer.callback_metrics
        if self._monitor is not None:
            dev = {n.removeprefix("dev/"): float(v) for n, v in scores.items() if n[:4] == "dev/"}
            self.evaluations.append((step, dev))
            if self.best()[0] == step:
                trainer.save_checkpoint(self.file(step), weights_only=True)
        self._take(trainer)

    def on_train_end(self, *args: Any) -> None:
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        self._handlers = {}

    on_exception = on_train_end

    def state_dict(self) -> dict[str, Any]:
        return {"evaluations": [[step, values] for step, values in self.evaluations]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.evaluations = [(step, values) for step, values in state_dict["evaluations"]]

    def _take(self, trainer: pl.Trainer) -> None:
        """Write a point if it is time, unless the stage ends."""
        if trainer.should_stop or trainer.global_step >= self._steps:
            return  # the stage's outcome is about to be written; then comes `leave_if_asked`
        due = self._soon or (
            trainer.is_global_zero and time.monotonic() - self._last >= self._seconds
        )
        # signal number times two, plus one if a point is due: one exchange for both
        decided = self._agreement.highest(2 * (self._asked or 0) + due)
        if not decided:
            return
        asked = decided // 2  # a signal that came since then waits for the next decision
        before = points(self._folder / "resume")
        point = self._folder / "resume" / f"{trainer.global_step:08d}.ckpt"
        trainer.save_checkpoint(point, weights_only=False)
        if trainer.is_global_zero:
            # neither the older points, nor what is not the best of either of the newest two
            kept = (self._best_at_last_point, self.best_model_path)
            for old in (*before[:-1], *self._best_files()):
                if str(old) not in kept:
                    old.unlink()
        self._best_at_last_point = self.best_model_path
        self._last, self._soon = time.monotonic(), False
        if asked:
            self._asked = asked
            self.leave_if_asked(trainer.global_step)

    def leave_if_asked(self, step: int) -> None:
        """End the run if a signal came after the last point; the outcome is stored by now."""
        asked = self._agreement.highest(self._asked or 0)
        if asked in self._requeues:
            self._requeues[asked](asked, None)
        if asked:
            raise Interrupted(asked, step)

    def _best_files(self) -> list[Path]:
        return [] if self._monitor is None else list(self._folder.glob("best-*.ckpt"))

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if signum == signal.SIGTERM and "SUBMITIT_EXECUTOR" in os.environ:
            # announces a signal to requeue, or the end; submitit itself lets it pass
            self._soon = True
        elif self._asked is not None:
            raise KeyboardInterrupt  # asked twice: do not wait for the step
        else:
            self._asked = signum


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
