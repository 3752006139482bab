"""Chooses the precision of training: `bf16-mixed` where the processor has native bf16 products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch
from lightning.pytorch.accelerators import AcceleratorRegistry

from tartan.core.device import is_on_cuda
from tartan.errors import UserError
from tartan.settings import checked

Precision = Literal["auto", "bf16-mixed", "32-true", "64-true"]
TRAINED = get_args(Precision)[1:]
"""Precisions that work with manual optimisation."""


def check_accelerator(accelerator: object) -> None:
    """Check that Lightning knows the accelerator, and that this machine has one.

    Raises:
        UserError: Lightning does not know it, or the machine has none.
    """
    kinds = {name: AcceleratorRegistry[name]["accelerator"] for name in sorted(AcceleratorRegistry)}
    known = ["auto", "gpu", *kinds]
    if accelerator not in known:
        raise UserError(
            f"trainer.accelerator must be one of {', '.join(known)}, got {accelerator!r}"
        )
    wanted = {"auto": ["cpu"], "gpu": ["cuda", "mps"]}.get(str(accelerator), [str(accelerator)])
    if not any(kinds[name].is_available() for name in wanted):
        raise UserError(
            f"trainer.accelerator={accelerator}: this machine has none that PyTorch can use; "
            "use trainer.accelerator=cpu, or auto"
        )


@checked
def resolve_precision(precision: Precision, accelerator: str) -> str:
    """Return a Lightning precision for `auto`; any other is checked and returned.

    Args:
        precision: the option's value.
        accelerator: Lightning's name of the accelerator; `auto` takes the GPU if there is one.

    Raises:
        UserError: the precision is unknown, or does not work with manual optimisation.
    """
    if precision != "auto":
        return precision
    if is_on_cuda(accelerator):
        return "bf16-mixed" if torch.cuda.is_bf16_supported(False) else "32-true"
    if accelerator in ("auto", "cpu") and _cpu_multiplies_bf16():
        return "bf16-mixed"
    return "32-true"


@contextmanager
def parameters_in(precision: str) -> Iterator[None]:
    """Create floating-point tensors in the type in which `precision` keeps parameters.

    Tensors that are created in float32 and converted later are rounded.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if precision == "64-true" else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _cpu_multiplies_bf16() -> bool:
    # Only newer versions of torch tell; without it, emulated bf16 would be slower than fp32.
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
