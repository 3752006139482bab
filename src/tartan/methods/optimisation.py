"""AdamW over parameter groups, with warm-up and a linear or constant learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau
from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

from tartan.errors import UserError
from tartan.settings import Below1, Checked, Fraction, NonNegative, Positive


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
        decay: `linear`, from the peak rates to 0 at the last step; or `constant`, at the peak.
        clip_norm: largest norm of all gradients together; None does not clip.
    """

    body_lr: NonNegative = 1e-4
    end_head_lr: NonNegative = 1e-3
    weight_decay: NonNegative = 0.1
    beta1: Below1 = 0.9
    beta2: Below1 = 0.98
    eps: NonNegative = 1e-6
    warmup: Fraction = 0.06
    decay: Literal["linear", "constant"] = "linear"
    clip_norm: Positive | None = 1.0

    def optimiser(
        self, body: nn.Module, end_head: nn.Module | None, other_heads: Iterable[nn.Module]
    ) -> torch.optim.AdamW:
        """Return an AdamW of all trainable parameters, fused where the device supports it."""
        groups = _groups("body", [body, *other_heads], self.body_lr, self.weight_decay)
        if end_head is not None:
            groups += _groups("end_head", [end_head], self.end_head_lr, self.weight_decay)
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

    def schedule(self, optimiser: torch.optim.Optimizer, steps: int) -> LambdaLR:
        """Return the schedule: warm-up, then linear decay to 0 at `steps`, or none."""
        rising = round(self.warmup * steps)
        schedule: LambdaLR = (
            get_linear_schedule_with_warmup(optimiser, rising, steps)
            if self.decay == "linear"
            else get_constant_schedule_with_warmup(optimiser, rising)
        )
        return schedule


def check_schedule(schedule: object, frequencies: Iterable[int], method: str) -> None:
    """Check the schedule that a module's `configure_optimizers` has returned.

    Args:
        schedule: the only schedule; None where there is none, or where the base was not called.
        frequencies: those that Lightning was given.
        method: name of the module's class, for messages.

    Raises:
        UserError: it cannot be stepped after every step of the optimiser.
    """
    if not hasattr(schedule, "step"):
        raise UserError(
            f"configure_optimizers() of {method} has to call that of its base, "
            'and to return one optimiser with its schedule: {"optimizer": ..., '
            '"lr_scheduler": ...}; for another optimiser alone, override new_optimiser()'
        )
    if any(frequency != 1 for frequency in frequencies):
        raise UserError(
            f"configure_optimizers() of {method}: a schedule is stepped after "
            "every step of the optimiser, so that it takes no frequency"
        )
    if isinstance(schedule, ReduceLROnPlateau):
        raise UserError(
            "ReduceLROnPlateau needs a metric, and a schedule is stepped after every step; use "
            "one that needs none, or EarlyStopping"
        )


def set_rates(schedule: LambdaLR) -> None:
    """Set the next step's rates by this schedule, whatever those of its optimiser are."""
    groups = schedule.optimizer.param_groups
    for group, lr, factor in zip(groups, schedule.base_lrs, schedule.lr_lambdas, strict=True):
        group["lr"] = lr * factor(schedule.last_epoch)


def _groups(name: str, modules: list[nn.Module], lr: float, weight_decay: float) -> list[dict]:
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    decayed = [p for p in parameters if p.ndim >= 2]
    kept = [p for p in parameters if p.ndim < 2]
    return [
        {"params": group, "lr": lr, "weight_decay": decay, "name": title}
        for group, decay, title in (
            (decayed, weight_decay, name),
            (kept, 0.0, f"{name}_without_decay"),
        )
        if group
    ]
