"""Chooses the precision of training: `bf16-mixed` where the processor has native bf16 products."""

from __future__ import annotations

from typing import Any, Literal

import torch

from tartan.core.device import is_on_cuda

Precision = Literal["auto", "bf16-mixed", "32-true", "64-true"]


def resolve_precision(precision: str, accelerator: str) -> str:
    """Return a Lightning precision for `auto`; any other is returned.

    Args:
        precision: the option's value.
        accelerator: Lightning's name of the accelerator; `auto` takes the GPU if there is one.
    """
    if precision != "auto":
        return precision
    if is_on_cuda(accelerator):
        return "bf16-mixed" if torch.cuda.is_bf16_supported(False) else "32-true"
    if accelerator in ("auto", "cpu") and _cpu_multiplies_bf16():
        return "bf16-mixed"
    return "32-true"


def _cpu_multiplies_bf16() -> bool:
    # Only newer versions of torch tell; without it, emulated bf16 would be slower than fp32.
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
