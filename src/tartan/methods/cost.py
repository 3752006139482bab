"""Measures the cost of a stage's training: tokens, floating-point operations, time and memory."""

import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count
from torch.utils.hooks import RemovableHandle

from tartan.core.task import Batch
from tartan.core.task_names import META_GRADIENT, META_HEAD
from tartan.evaluation.stage_result import Measured, Spent
from tartan.kernels.packed_row import PackedRow
from tartan.methods.module import TaskMixing
from tartan.methods.strategy import Agreement

BACKWARD = 2
"""Cost of a backward pass in forward passes: two matrix products for each one."""
_PACKED = ("torch_attn::_varlen_attn", "flash_attn::_flash_attn_varlen_forward")
"""What a GPU's kernels of packed rows are called where torch dispatches them."""
_Size = tuple[int, int]
"""The two numbers in which a pass's cost is linear: 1 and rows, or tokens and pairs."""
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

    def cost(self) -> tuple[Spent, Measured]:
        """Return the cost so far; all processes have to call this."""
        state, tokens = self.state_dict(), sum(self._tokens.values())
        spent = Spent(
            tokens=state["tokens"],
            examples=state["examples"],
            flops=state["flops"],
            padding_share=self._padding / (tokens + self._padding) if tokens else 0.0,
        )
        peak = max(self._agreement.values_of_all(self._peak)) or None
        return spent, Measured(
            seconds=state["seconds"], peak_memory_bytes=peak, processes=self._processes
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


class _Counting(TorchDispatchMode):
    """Torch's `FlopCounterMode`, which knows no attention of a CPU and none of packed rows."""

    total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        out = func(*args, **(kwargs or {}))
        operator = func._overloadpacket
        if operator is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
            self.total += sdpa_flop_count(*(one.shape for one in args[:3]))  # type: ignore[no-untyped-call]
        elif func.name().partition(".")[0] in _PACKED:
            query, ends = args[0], args[3]
            pairs = int(ends.diff().square().sum())
            self.total += 4 * query.shape[1] * query.shape[2] * pairs
        elif operator in flop_registry:
            self.total += flop_registry[operator](*args, **(kwargs or {}), out_val=out)
        return out


class ForwardFlops:
    """Calls `spent` with the floating-point operations of each forward pass of some modules.

    They are counted operator by operator (a multiplication and an addition are two) the first time
    that a module's inputs have their shapes. A pass's cost is linear in its number of rows, that of
    a packed row in its tokens and its pairs of positions that attend to each other, so that two
    counts give all others. A pass that will be differentiated counts as three forward passes;
    recomputing it in the backward pass to save memory does not count. A module with a method
    `computed_rows` computes that many rows for its first input. `hooks` are those on the modules.
    """

    def __init__(self, modules: Iterable[nn.Module], spent: Callable[[int], None]) -> None:
        self._spent = spent
        self._known: defaultdict[tuple[Any, ...], dict[_Size, int]] = defaultdict(dict)
        self._key: tuple[Any, ...] = ()
        self._size: _Size = (1, 1)
        self._counting: _Counting | None = None
        self.hooks: list[RemovableHandle] = []
        for module in modules:
            self.hooks += [
                module.register_forward_pre_hook(self._before, with_kwargs=True),
                module.register_forward_hook(self._after, always_call=True),
            ]

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._key, self._size = _key(module, args, kwargs)
        if _cost(self._known[self._key], self._size) is None:
            self._counting = _Counting()  # type: ignore[no-untyped-call]
            self._counting.__enter__()  # type: ignore[no-untyped-call]

    def _after(self, module: nn.Module, args: Any, out: Any) -> None:
        if self._counting is not None:
            counting, self._counting = self._counting, None
            counting.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._known[self._key][self._size] = counting.total
        differentiated = any(isinstance(v, Tensor) and v.requires_grad for v in _leaves(out))
        operations = _cost(self._known[self._key], self._size)
        assert operations is not None
        self._spent(operations * (1 + BACKWARD * differentiated))


def _cost(counted: Mapping[_Size, int], size: _Size) -> int | None:
    """Return the cost of a pass by those of other sizes; None if it has to be counted."""
    if size in counted:
        return counted[size]
    for (one, this), (other, that) in combinations(counted.items(), 2):
        independent = one[0] * other[1] - other[0] * one[1]
        if independent:  # Cramer's rule
            first = this * other[1] - that * one[1]
            second = one[0] * that - other[0] * this
            return (size[0] * first + size[1] * second) // independent
    return None


def _key(module: nn.Module, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], _Size]:
    """Return all that a pass's cost depends on apart from its size, and the size."""
    shapes = [tuple(leaf.shape) for leaf in _leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    packing = kwargs.get("packing")
    if isinstance(packing, PackedRow):
        return (id(module), "packed", *sorted(kwargs)), (packing.tokens, packing.pairs)
    computed_rows = getattr(module, "computed_rows", None)
    if computed_rows is not None:
        (*leading, _, width), *others = shapes
        return (id(module), *leading, width, *others), (1, computed_rows(args[0]))
    first = {shape[0] if shape else 0 for shape in shapes}
    if len(first) == 1 and 0 not in first:
        return (id(module), *(shape[1:] for shape in shapes)), (1, first.pop())
    return (id(module), *shapes), (1, 1)  # the inputs do not agree on the number of rows


def _leaves(tree: Any) -> list[Any]:
    """Return the leaves of nested tuples, dicts and Transformers' outputs."""
    return tree_leaves(dict(tree) if isinstance(tree, dict) else tree)
