"""Writes checkpoints from which a stage resumes exactly as if it had not been interrupted."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Checkpoint

from tartan.methods.checkpoint import is_whole
from tartan.methods.launch import is_main_process
from tartan.methods.module import TaskMixing
from tartan.methods.strategy import Agreement

log = logging.getLogger(__name__)


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

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, TaskMixing)
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
    """Return the signal on which submitit requeues its job, and its handler; None elsewhere.

    Submitit requeues on preemption and, up to `max_num_timeout` times, at the time limit.
    """
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
