"""Clips the gradients of an update, and skips the update where numbers are not finite."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor


def prepare_update(
    optimiser: torch.optim.Optimizer, norm: Tensor, limit: float | None, finite: Tensor
) -> None:
    """Make the next `optimiser.step()` clip its gradients, or skip the update.

    A fused optimiser gets both in the way that a GradScaler passes them: its kernel scales the
    gradients as it reads them, and skips the update, without waiting for the flag on the host.

    Args:
        optimiser: the optimiser.
        norm: norm of all the optimiser's gradients together, a scalar.
        limit: maximum norm; None does not clip.
        finite: a boolean scalar; where it is False, the step updates nothing.
    """
    fused = bool(optimiser.defaults.get("fused"))  # not every optimiser has it
    if fused:
        optimiser.found_inf = (~finite).float()  # type: ignore[attr-defined]
    elif not bool(finite):
        optimiser.zero_grad(set_to_none=True)
    if limit is None:
        return
    divisor = ((norm + 1e-6) / limit).clamp(min=1)  # as torch's clip_grad_norm_ has it
    gradients = [p.grad for group in optimiser.param_groups for p in group["params"]]
    here = [g.to_local() if isinstance(g, DTensor) else g for g in gradients if g is not None]
    if fused and all(gradient.dtype == torch.float32 for gradient in here):
        optimiser.grad_scale = divisor.float()  # type: ignore[attr-defined]
    elif here:  # the kernel would read the scale in float32
        torch._foreach_div_(here, divisor.to(here[0].dtype))
