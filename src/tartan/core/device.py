"""Numeric types of mixed precision, and steps that are undone without waiting for a GPU."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn


def is_cpu(device: torch.device) -> bool:
    """Return whether the device is the CPU; elsewhere a branch on a tensor waits for all work."""
    return device.type == "cpu"


def is_on_cpu(accelerator: str) -> bool:
    """Return whether Lightning's `accelerator` is the CPU; `auto` takes a GPU if there is one."""
    return accelerator == "cpu" or not torch.accelerator.is_available()


def is_on_cuda(accelerator: str) -> bool:
    """Return whether Lightning's `accelerator` is a CUDA GPU, which `auto` and `gpu` take first."""
    return accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Compute in the types of the operands, also inside of mixed precision."""
    return torch.autocast(device.type, enabled=False)


def present_autocast(device: torch.device) -> Callable[[], AbstractContextManager[object]]:
    """Return what enters again, inside of `without_autocast`, the autocast that is on now."""
    kind = device.type
    if not torch.amp.is_autocast_available(kind) or not torch.is_autocast_enabled(kind):
        return nullcontext
    dtype, caches = torch.get_autocast_dtype(kind), torch.is_autocast_cache_enabled()
    return lambda: torch.autocast(kind, dtype=dtype, cache_enabled=caches)


class StepState:
    """A copy of modules' buffers and of parameters, to undo a step with non-finite numbers."""

    def __init__(self, modules: Iterable[nn.Module], parameters: Iterable[nn.Parameter]) -> None:
        self._buffers = [
            (owner, name, buffer.detach().clone())
            for module in modules
            for owner in module.modules()
            for name, buffer in owner.named_buffers(recurse=False)
        ]
        self._parameters = [(parameter, parameter.detach().clone()) for parameter in parameters]

    @torch.no_grad()
    def restore_unless(self, finite: Tensor) -> None:
        """Restore everything where `finite`, a scalar boolean, is False; decided on the device."""
        for owner, name, before in self._buffers:
            now = getattr(owner, name)
            now.copy_(torch.where(finite, now, before))
        for parameter, before in self._parameters:
            parameter.copy_(torch.where(finite, parameter, before))
