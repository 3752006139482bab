"""Times a step with and without each optimisation, on the same batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from benchmarks.case import BuiltCase, Case, build_case
from benchmarks.manual_step import ManualStep
from benchmarks.measure import Ratio, ratio, time_interleaved
from benchmarks.row import Row
from tartan.encoders.heads import MaskedLMHead
from tartan.kernels.dropout import replace_dropout
from tartan.kernels.packed_row import PackedRow
from tartan.methods.measuring import now


@dataclass(frozen=True)
class Ablation:
    """An optimisation, and how to turn it off.

    Attributes:
        name: name of the optimisation in tables.
        overrides: overrides of the config that turn it off.
        turn_off: turns it off in a case that has been built, where overrides cannot.
        by_default: whether runs use it by default; if not, it is turned on instead of off.
    """

    name: str
    overrides: Sequence[str] = ()
    turn_off: Callable[[BuiltCase], None] = lambda case: None
    by_default: bool = True


def _use_torch_attention(case: BuiltCase) -> None:
    body: Any = case.module.body
    body.set_attn_implementation(_TORCH_ATTENTION)


def _torch_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    packing: PackedRow | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute torch's attention, within each text of a packed row."""
    sdpa = AttentionInterface()["sdpa"]
    if packing is None:
        found: tuple[Tensor, Tensor | None] = sdpa(
            module, query, key, value, attention_mask, **options
        )
        return found

    def attend_in_block(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
        attended: Tensor = sdpa(module, q, k, v, allowed, **options)[0]
        return attended

    return packing.attend(
        attend_in_block, query, key, value,
        dropout=options.get("dropout", 0.0), scale=options.get("scaling"), window=None,
    ), None  # fmt: skip


_TORCH_ATTENTION = "tartan_bench_torchs"
AttentionInterface.register(_TORCH_ATTENTION, _torch_attention)
AttentionMaskInterface.register(_TORCH_ATTENTION, AttentionMaskInterface()["sdpa"])


def _use_unfused_adamw(case: BuiltCase) -> None:
    optimisation = case.module.optimisation
    fused = optimisation.optimiser

    def optimiser(*modules: object) -> torch.optim.AdamW:
        own = fused(*modules)  # type: ignore[arg-type]
        groups = [
            {"params": g["params"], "lr": g["lr"], "weight_decay": g["weight_decay"]}
            for g in own.param_groups
        ]
        return torch.optim.AdamW(groups, betas=own.defaults["betas"], eps=own.defaults["eps"])

    optimisation.optimiser = optimiser  # type: ignore[method-assign, assignment]


ABLATIONS = (
    Ablation("packed texts", ["packed=false"]),
    Ablation(
        "16 random bits an element for dropout",
        turn_off=lambda case: replace_dropout(case.module, nn.Dropout),
    ),
    Ablation("attention with the same dropout, in place", turn_off=_use_torch_attention),
    Ablation("fused AdamW", turn_off=_use_unfused_adamw),
    Ablation(
        "no attention dropout: fused attention", ["encoder.attention_dropout=0"], by_default=False
    ),
)
PADDED_ROWS = "masked positions padded to multiples of 16"
"""Avoids building kernels for new shapes, so it is measured on batches with new shapes."""


@dataclass(frozen=True)
class AblationRow(Row):
    """The time of a step without an optimisation, divided by that of a step with it.

    Attributes:
        optimisation: its name.
        ratio: the ratio of times.
        by_default: whether runs use it by default.
    """

    title = "time of a META-TARTAN step without an optimisation, divided by that with it"
    optimisation: str
    ratio: Ratio
    by_default: bool


def measure_ablations(
    case: Case, rounds: int, folder: Path, device: torch.device
) -> list[AblationRow]:
    """Time three steps of a case as it is and without each optimisation, in turn.

    Args:
        case: the case.
        rounds: number of measurements of each.
        folder: a folder for the cases' runs.
        device: the device.
    """
    parts = {}
    for number, ablation in enumerate((Ablation(""), *ABLATIONS)):
        built = build_case(case, 3, folder / str(number), *ablation.overrides)
        ablation.turn_off(built)
        parts[ablation.name] = partial(ManualStep(built, device).steps, built.batches(device))
    times = time_interleaved(parts, rounds, device)
    rows = [AblationRow(PADDED_ROWS, _padded_rows_ratio(case, rounds, folder, device), True)]
    for ablation in ABLATIONS:
        without, using = times[ablation.name], times[""]
        if not ablation.by_default:
            without, using = using, without
        rows.append(AblationRow(ablation.name, ratio(without, using), ablation.by_default))
    return rows


def _padded_rows_ratio(case: Case, rounds: int, folder: Path, device: torch.device) -> Ratio:
    """Return the time a token without `PADDED_ROWS`, divided by that with it, on new batches.

    A round has three batches; the first two rounds are not counted.
    """
    steps = 3
    built = [build_case(case, 2 * steps * (rounds + 2), folder / f"shapes{i}") for i in (0, 1)]
    for head in built[1].module.heads.values():
        if isinstance(head, MaskedLMHead):
            head.row_multiple = 1
    by_hand = [ManualStep(each, device) for each in built]
    seconds: tuple[list[float], list[float]] = ([], [])
    taken = 0
    for number in range(rounds + 2):
        for which in (0, 1) if number % 2 else (1, 0):
            batches = [built[which].batch(step, device) for step in range(taken, taken + steps)]
            taken += steps
            began = now(device)
            by_hand[which].steps(batches)
            tokens = sum(part.tokens for batch in batches for part in batch.tasks.values())
            if number > 1:
                seconds[which].append((now(device) - began) / tokens)
    return ratio(seconds[1], seconds[0])
