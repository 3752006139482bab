"""Counts the floating-point operations of forward passes, once for each shape of input."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count
from torch.utils.hooks import RemovableHandle

from tartan.kernels.packed_row import PackedRow

BACKWARD = 2
"""Cost of a backward pass in forward passes: two matrix products for each one."""
_PACKED = ("torch_attn::_varlen_attn", "flash_attn::_flash_attn_varlen_forward")
"""What the kernels of `tartan.kernels.varlen` are called where torch dispatches them."""
_Size = tuple[int, int]
"""The two numbers in which a pass's cost is linear: 1 and rows, or tokens and pairs."""


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
    # with tangents (forward mode) a pass of the same shapes computes more
    kind = (id(module), forward_ad._current_level)
    packing = kwargs.get("packing")
    if isinstance(packing, PackedRow):
        return (*kind, "packed", *sorted(kwargs)), (packing.tokens, packing.pairs)
    computed_rows = getattr(module, "computed_rows", None)
    if computed_rows is not None:
        (*leading, _, width), *others = shapes
        return (*kind, *leading, width, *others), (1, computed_rows(args[0]))
    first = {shape[0] if shape else 0 for shape in shapes}
    if len(first) == 1 and 0 not in first:
        return (*kind, *(shape[1:] for shape in shapes)), (1, first.pop())
    return (*kind, *shapes), (1, 1)  # the inputs do not agree on the number of rows


def _leaves(tree: Any) -> list[Any]:
    """Return the leaves of nested tuples, dicts and Transformers' outputs."""
    return tree_leaves(dict(tree) if isinstance(tree, dict) else tree)
