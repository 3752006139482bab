"""Measures the cost of a stage's training: tokens, floating-point operations, time and memory."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from torch.utils.hooks import RemovableHandle

from tartan.core.task import Batch
from tartan.core.task_names import META_GRADIENT, META_HEAD
from tartan.methods.flops import ForwardFlops
from tartan.methods.module import TaskMixing
from tartan.methods.strategy import Agreement

SECOND = "second "
"""Prefix of the names of tasks' second batches."""


def now(device: torch.device) -> float:
    """Return the time after all work queued on the device is finished [s]."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def peak_of_device(device: torch.device) -> int:
    """Return the peak of a GPU's tensors, or on a CPU of this process's main memory [bytes]."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@dataclass(frozen=True)
class StageCost:
    """The cost of a stage's training.

    Attributes:
        seconds: wall time of the stage's training and evaluations [s].
        tokens: number of tokens of each task that went through the body, without padding (0 for
            images); `meta_gradient` and `meta_head` are the end task's tokens for these.
        examples: number of examples, likewise.
        flops: floating-point operations, likewise, those of heads included.
        padding_share: share of padding in the positions that went through the body.
        peak_memory_bytes: of the device, or on a CPU of the process; of several the highest.
        processes: number of processes at the end of the stage.
    """

    seconds: float
    tokens: dict[str, int]
    examples: dict[str, int]
    flops: dict[str, int]
    padding_share: float
    peak_memory_bytes: int | None
    processes: int = 1


class CostMeter(pl.Callback):
    """Measures what a stage costs, also when it is interrupted and resumed."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._examples: Counter[str] = Counter()
        self._flops: Counter[str] = Counter()  # of all processes, up to the resumed step
        self._flops_here: Counter[str] = Counter()
        self._padding = self._peak = 0
        self._seconds, self._began = 0.0, time.perf_counter()
        self._agreement, self._processes = Agreement(), 1
        self._device: torch.device | None = None
        self._hooks: list[RemovableHandle] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, TaskMixing)
        self._agreement, self._processes = pl_module.agreement, trainer.world_size
        self._device = pl_module.device
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
        watched = [pl_module.body, *pl_module.heads.values()]
        if pl_module.meta_head is not None:
            watched.append(pl_module.meta_head.head)
        self._hooks = ForwardFlops(watched, partial(self._spent, pl_module)).hooks

    def _spent(self, module: TaskMixing, operations: int) -> None:
        purpose = None if module.passes is None else module.passes.purpose
        if purpose is None:  # in an evaluation nothing is counted
            return
        kinds = {"meta_features": META_HEAD, "meta_head": META_HEAD, "meta_gradient": META_GRADIENT}
        prefix = SECOND if purpose.kind == "second_batch" else ""
        self._flops_here[kinds.get(purpose.kind, f"{prefix}{purpose.task}")] += operations

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, *_: Any
    ) -> None:
        parts: dict[str, Batch | None] = dict(batch.tasks)
        parts |= {META_GRADIENT: batch.meta_batch, META_HEAD: batch.meta_head_batch}
        parts |= {f"{SECOND}{name}": part for name, part in (batch.second or {}).items()}
        for name, part in parts.items():
            if part is not None:
                self._tokens[name] += part.tokens
                self._examples[name] += part.examples
                self._padding += part.padding

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._peak = self._highest()

    def cost(self) -> StageCost:
        """Return the cost so far; all processes have to call this."""
        state, tokens = self.state_dict(), sum(self._tokens.values())
        return StageCost(
            seconds=state["seconds"],
            tokens=state["tokens"],
            examples=state["examples"],
            flops=state["flops"],
            padding_share=self._padding / (tokens + self._padding) if tokens else 0.0,
            peak_memory_bytes=max(self._agreement.values_of_all(self._peak)) or None,
            processes=self._processes,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state for Lightning's checkpoints, which asks every process for it."""
        return {
            "tokens": dict(self._tokens),
            "examples": dict(self._examples),
            "flops": dict(sum(self._agreement.values_of_all(self._flops_here), self._flops)),
            "padding": self._padding,
            "peak": self._highest(),
            "seconds": self._seconds + time.perf_counter() - self._began,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._tokens = Counter(state_dict["tokens"])
        self._examples = Counter(state_dict["examples"])
        self._flops = Counter(state_dict["flops"])
        self._padding, self._peak = state_dict["padding"], state_dict["peak"]
        self._seconds = state_dict["seconds"]

    def _highest(self) -> int:
        return max(self._peak, 0 if self._device is None else peak_of_device(self._device))
