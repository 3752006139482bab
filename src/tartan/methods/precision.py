"""Chooses the precision of training: `bf16-mixed` where the processor has native bf16 products."""

from __future__ import annotations

from typing import Any, Literal

import torch

from tartan.core.device import is_on_cuda

Precision = Literal["auto", "bf16-mixed", "32-true", "64-true"]


def resolve_precision(precision: str, accelerator: str) -> str:
    """Return a Lightning precision for `auto` on Lightning's `accelerator`; any other as it is."""
    if precision != "auto":
        return precision
    if is_on_cuda(accelerator):
        fast = torch.cuda.is_bf16_supported(False)
    else:  # without native products, emulated bf16 would be slower than fp32
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        names = ("avx512_bf16", "amx_bf16", "bf16")
        fast = accelerator in ("auto", "cpu") and any(map(capabilities.get, names))
    return "bf16-mixed" if fast else "32-true"
