"""Measures the cost of a stage's training: tokens, floating-point operations, time and memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.trainer.states import TrainerFn
from torch.utils.hooks import RemovableHandle

from tartan.core.body import SharedBody
from tartan.core.passes import Passes, Purpose
from tartan.core.task import Batch
from tartan.data.auxiliary import META_GRADIENT, META_HEAD
from tartan.methods.flops import ForwardFlops
from tartan.methods.measuring import PassClock, now, peak_of_device
from tartan.methods.module import TaskMixing
from tartan.methods.strategy import Agreement

SECOND = "second "
"""Prefix of the names of tasks' second batches."""


@dataclass(frozen=True)
class StageCost:
    """The cost of a stage's training; evaluations are only included in `seconds`.

    Attributes:
        seconds: wall time of the stage's training and evaluations [s].
        tokens: number of tokens of each task that went through the body, without padding (0 for
            images); `meta_gradient` and `meta_head` are the end task's tokens for these.
        examples: number of examples, likewise.
        flops: floating-point operations, likewise, those of heads included.
        padding_share: share of padding in the positions that went through the body.
        tokens_per_second: tokens per second of the steps, without evaluations; None without tokens.
        peak_memory_bytes: peak memory of the device, or on a CPU of the process; of several
            processes the highest.
        processes: number of processes at the end of the stage.
        summed_bytes: size of the gradients, losses and features that were summed over processes in
            all steps; 0 with one process.
        floor_share: share of the steps' time that was spent in forward and backward passes, of
            tasks and meta-gradient, and in the optimiser's update, which every step needs; in the
            main process.
    """

    seconds: float
    tokens: dict[str, int]
    examples: dict[str, int]
    flops: dict[str, int]
    padding_share: float
    tokens_per_second: float | None
    peak_memory_bytes: int | None
    floor_share: float | None
    processes: int = 1
    summed_bytes: int = 0


class CostMeter(pl.Callback):
    """Measures what a stage costs, also when it is interrupted and resumed."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._examples: Counter[str] = Counter()
        self._flops: Counter[str] = Counter()  # of all processes, up to where the stage went on
        self._flops_here: Counter[str] = Counter()
        self._agreement, self._processes = Agreement(), 1
        self._padding = 0
        self._peak = 0  # up to the last checkpoint or end of a training
        self._body: SharedBody | None = None
        self._summed_before = 0
        # seconds: of all, of the steps, of what no step can do without
        self._all, self._steps, self._floor = _Span(), _Span(), 0.0
        self._clock: PassClock | None = None
        self._device: torch.device | None = None
        self._purpose: Purpose | None = None
        self._hooks: list[RemovableHandle] = []
        self._all.start()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin to measure the module's passes and the optimiser's updates."""
        assert isinstance(pl_module, TaskMixing)
        self._agreement, self._processes = pl_module.agreement, trainer.world_size
        self._device, self._body = pl_module.device, pl_module.shared
        self._clock = clock = PassClock(pl_module.device)
        if pl_module.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(pl_module.device)
        pl_module.passes = partial(_MeasuredPasses, self._measured)
        watched = [pl_module.body, *pl_module.heads.values()]
        if pl_module.meta_head is not None:
            watched.append(pl_module.meta_head.head)
        updates: list[AbstractContextManager[None]] = []

        def begin(*_: Any) -> None:
            updates.append(clock.running())
            updates[-1].__enter__()

        def end(*_: Any) -> None:
            updates.pop().__exit__(None, None, None)

        (optimiser,) = trainer.optimizers
        self._hooks = [
            *ForwardFlops(watched, self._spent).hooks,
            optimiser.register_step_pre_hook(begin),
            optimiser.register_step_post_hook(end),
        ]
        self._steps.start()

    @contextmanager
    def _measured(self, purpose: Purpose) -> Iterator[None]:
        """Note what is computed, and measure its time if every step needs it."""
        assert self._clock is not None
        needed = purpose.kind in ("task", "meta_gradient")
        self._purpose = purpose
        try:
            with self._clock.running() if needed else nullcontext():
                yield
        finally:
            self._purpose = None

    def _spent(self, operations: int) -> None:
        if self._purpose is not None:  # in an evaluation nothing is counted
            self._flops_here[_account(self._purpose)] += operations

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, *_: Any
    ) -> None:
        """Count the step's tokens, examples and padding."""
        parts: dict[str, Batch | None] = dict(batch.tasks)
        parts |= {META_GRADIENT: batch.meta_batch, META_HEAD: batch.meta_head_batch}
        parts |= {f"{SECOND}{name}": part for name, part in (batch.second or {}).items()}
        for name, part in parts.items():
            if part is not None:
                self._tokens[name] += part.tokens
                self._examples[name] += part.examples
                self._padding += part.padding

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop the clock of training steps."""
        self._steps.stop(now(pl_module.device))

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock of training steps again."""
        if self._clock is not None and trainer.state.fn == TrainerFn.FITTING:
            self._steps.start()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop the clock of training steps at the end of the stage."""
        self._steps.stop(now(pl_module.device))

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Remove the hooks from modules and optimiser."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._peak = [], self._highest()

    def cost(self) -> StageCost:
        """Return the cost so far; all processes have to call this."""
        state, tokens = self.state_dict(), sum(self._tokens.values())
        steps = state["steps"]
        return StageCost(
            seconds=state["all"],
            tokens=dict(self._tokens),
            examples=dict(self._examples),
            flops=state["flops"],
            padding_share=self._padding / (tokens + self._padding) if tokens else 0.0,
            tokens_per_second=tokens / steps if tokens and steps else None,
            peak_memory_bytes=max(self._agreement.values_of_all(self._peak)) or None,
            floor_share=state["floor"] / steps if steps else None,
            processes=self._processes,
            summed_bytes=state["summed"],
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state for Lightning's checkpoints, which asks every process for it."""
        here = 0.0 if self._clock is None else self._clock.seconds()
        return {
            "tokens": dict(self._tokens),
            "examples": dict(self._examples),
            "flops": dict(sum(self._agreement.values_of_all(self._flops_here), self._flops)),
            "padding": self._padding,
            "peak": self._highest(),
            "all": self._all.seconds(),
            "steps": self._steps.seconds(),
            "floor": self._floor + here,
            "summed": self._summed_before + (0 if self._body is None else self._body.summed_bytes),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of a checkpoint, and count on from it."""
        self._tokens = Counter(state_dict["tokens"])
        self._examples = Counter(state_dict["examples"])
        self._flops = Counter(state_dict["flops"])
        self._padding, self._peak = state_dict["padding"], state_dict["peak"]
        self._all.before, self._steps.before = state_dict["all"], state_dict["steps"]
        self._floor, self._summed_before = state_dict["floor"], state_dict["summed"]

    def _highest(self) -> int:
        here = 0 if self._device is None else peak_of_device(self._device)
        return max(self._peak, here)


class _MeasuredPasses(Passes):
    """Passes of which a context manager measures what is computed, by its purpose."""

    def __init__(
        self, measured: Callable[[Purpose], AbstractContextManager[None]], *args: Any
    ) -> None:
        super().__init__(*args)
        self._measured = measured

    @contextmanager
    def computing(self, purpose: Purpose) -> Iterator[None]:
        """See `Passes.computing`."""
        with self._measured(purpose), super().computing(purpose):
            yield


def _account(purpose: Purpose) -> str:
    """Return the name under which the cost of a purpose is reported."""
    if purpose.kind == "meta_gradient":
        return META_GRADIENT
    if purpose.kind in ("meta_features", "meta_head"):
        return META_HEAD
    return f"{SECOND}{purpose.task}" if purpose.kind == "second_batch" else purpose.task


class _Span:
    """The time between starts and stops, added to that of earlier processes [s]."""

    def __init__(self) -> None:
        self.before = 0.0
        self._began: float | None = None

    def start(self) -> None:
        self._began = time.perf_counter()

    def stop(self, at: float) -> None:
        if self._began is not None:
            self.before += at - self._began
            self._began = None

    def seconds(self) -> float:
        running = 0.0 if self._began is None else time.perf_counter() - self._began
        return self.before + running
