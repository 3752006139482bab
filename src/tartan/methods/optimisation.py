"""AdamW over parameter groups: its schedule, and updates that are clipped or skipped."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_scheduler

from tartan.encoders.layers import depths
from tartan.settings import Below1, Checked, Fraction, NonNegative, Positive, Share


@dataclass
class Optimisation(Checked):
    """Settings of the optimiser and its schedule.

    Attributes:
        body_lr: peak learning rate of the body and of the auxiliary heads.
        end_head_lr: peak learning rate of the end task's head.
        weight_decay: decay of matrices; biases and norms are not decayed.
        beta1: decay of AdamW's first moment.
        beta2: decay of AdamW's second moment.
        eps: AdamW's epsilon.
        warmup: share of the steps over which the rates rise from 0.
        decay: `linear` or `cosine`, from the peak rates to 0 at the last step; or `constant`.
        clip_norm: largest norm of all gradients together; None does not clip.
        layer_decay: factor by which a layer's rate is below that of the layer above it; the top
            layer of the body has `body_lr` (Zhang et al., 2021).
    """

    body_lr: NonNegative = 1e-4
    end_head_lr: NonNegative = 1e-3
    weight_decay: NonNegative = 0.1
    beta1: Below1 = 0.9
    beta2: Below1 = 0.98
    eps: NonNegative = 1e-6
    warmup: Fraction = 0.06
    decay: Literal["linear", "cosine", "constant"] = "linear"
    clip_norm: Positive | None = 1.0
    layer_decay: Share = 1.0

    def optimiser(
        self, body: nn.Module, end_head: nn.Module | None, other_heads: Iterable[nn.Module]
    ) -> torch.optim.AdamW:
        """Return an AdamW of all trainable parameters, fused where the device supports it."""
        heads = [p for head in other_heads for p in head.parameters()]
        if self.layer_decay == 1:
            groups = self._groups("body", [*body.parameters(), *heads], self.body_lr)
        else:
            depth_of = depths(body)
            groups = self._groups("heads", heads, self.body_lr)
            for depth in sorted(set(depth_of.values())):
                layer = [p for p in body.parameters() if depth_of[p] == depth]
                lr = self.body_lr * self.layer_decay**depth
                groups += self._groups(f"body_{depth}_below_top", layer, lr)
        if end_head is not None:
            groups += self._groups("end_head", end_head.parameters(), self.end_head_lr)
        parameters = [p for group in groups for p in group["params"]]
        devices = {p.device.type for p in parameters}
        # a body's shards and whole heads cannot be in one kernel
        sharded = any(isinstance(p, DTensor) for p in parameters)
        return torch.optim.AdamW(
            groups,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            fused=devices <= {"cpu", "cuda"} and not sharded,
            foreach=False if sharded else None,
        )

    def _groups(
        self, name: str, parameters: Iterable[nn.Parameter], lr: float
    ) -> list[dict[str, Any]]:
        trained = [p for p in parameters if p.requires_grad]
        decayed = [p for p in trained if p.ndim >= 2]
        kept = [p for p in trained if p.ndim < 2]
        groups = [
            {"params": decayed, "lr": lr, "weight_decay": self.weight_decay, "name": name},
            {"params": kept, "lr": lr, "weight_decay": 0.0, "name": f"{name}_without_decay"},
        ]
        return [group for group in groups if group["params"]]

    def schedule(self, optimiser: torch.optim.Optimizer, steps: int) -> LambdaLR:
        """Return the schedule over `steps`: warm-up, then the decay."""
        rising = round(self.warmup * steps)
        kind = "constant_with_warmup" if self.decay == "constant" else self.decay
        schedule: LambdaLR = get_scheduler(kind, optimiser, rising, steps)
        return schedule


def prepare_update(
    optimiser: torch.optim.Optimizer, norm: Tensor, limit: float | None, finite: Tensor
) -> None:
    """Make the next `optimiser.step()` clip gradients of `norm` to `limit`, or skip the update.

    A fused optimiser gets both as from a GradScaler, so that the host waits for neither.
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
