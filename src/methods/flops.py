"""Floating-point operations of forward passes, counted once for each shape of input."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count
from torch.utils.hooks import RemovableHandle

BACKWARD = 2
"""A backward pass multiplies matrices twice for each product of the forward pass."""


def _attention_on_the_cpu(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))  # type: ignore[no-untyped-call]


class _Counting(TorchDispatchMode):
    """Adds up the floating-point operations of matrix products, convolutions and attention."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        operator = func._overloadpacket
        if operator is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
            # torch's table has the accelerators' kernels only
            self.total += _attention_on_the_cpu(*args)
        elif operator in flop_registry:
            self.total += flop_registry[operator](*args, **kwargs, out_val=out)
        return out


class ForwardFlops:
    """Tells what each forward pass of some modules costs, in floating-point operations.

    Counted operator by operator (a multiplication and an addition are two) the first time that a
    module's inputs have their shapes, and remembered. A pass that is to be differentiated counts
    three times its forward pass; computing it again in the backward pass, to save memory, does not
    count.

    Args:
        modules: which to watch; none may lie inside another.
        spent: called with the operations of each pass.
    """

    def __init__(self, modules: Iterable[nn.Module], spent: Callable[[int], None]) -> None:
        self._spent = spent
        self._known: dict[tuple[Any, ...], int] = {}
        self._key: tuple[Any, ...] = ()
        self._counting: _Counting | None = None
        self._handles: list[RemovableHandle] = []
        for index, module in enumerate(modules):
            self._handles += [
                module.register_forward_pre_hook(self._before(index), with_kwargs=True),
                module.register_forward_hook(self._after, always_call=True),
            ]

    def remove(self) -> None:
        """Watch no longer."""
        for handle in self._handles:
            handle.remove()

    def _before(self, index: int) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            self._key = _key(index, args, kwargs)
            if self._key not in self._known:
                self._counting = _Counting()
                self._counting.__enter__()  # type: ignore[no-untyped-call]

        return hook

    def _after(self, module: nn.Module, args: Any, out: Any) -> None:
        if self._counting is not None:
            counting, self._counting = self._counting, None
            counting.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._known[self._key] = counting.total
        differentiated = any(
            isinstance(leaf, Tensor) and leaf.requires_grad for leaf in _leaves(out)
        )
        self._spent(self._known[self._key] * (1 + BACKWARD * differentiated))


def _key(index: int, args: Any, kwargs: Any) -> tuple[Any, ...]:
    shapes = [tuple(leaf.shape) for leaf in _leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    # with tangents (forward mode) a pass of the same shapes computes more
    return (index, forward_ad._current_level, *shapes)


def _leaves(tree: Any) -> list[Any]:
    """Of tuples, dicts and Transformers' outputs, which are dicts of their own."""
    return tree_leaves(dict(tree) if isinstance(tree, dict) else tree)
