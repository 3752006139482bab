"""What each way of saving time is worth: the same batches with and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from src.bench.by_hand import OurStep
from src.bench.case import BuiltCase, Case, built_case
from src.bench.measure import Ratio, interleaved, ratio
from src.core.dropout import use_dropout


@dataclass(frozen=True)
class Lead:
    """A way of saving time, described by what a step without it is like.

    Attributes:
        name: what it is.
        without: overrides that leave it out, and `change`, where that takes more.
    """

    name: str
    without: Sequence[str] = ()
    change: Callable[[BuiltCase], None] = lambda case: None


def _torchs_dropout(case: BuiltCase) -> None:
    use_dropout(case.module, nn.Dropout)


def _unfused(case: BuiltCase) -> None:
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


LEADS = (
    Lead("parts of a batch chosen to save padding", ["part_overhead=null"]),
    Lead("16 random bits an element for dropout", change=_torchs_dropout),
    Lead("fused AdamW", change=_unfused),
)
OPTIONAL = "no attention dropout: fused attention"
"""Measured the other way round: overrides put it in."""


@dataclass(frozen=True)
class LeadRow:
    """How many times as long a step takes without the lead.

    Attributes:
        used: whether runs use it unless told otherwise.
    """

    name: str
    ratio: Ratio
    used: bool


def measure_leads(
    case: Case,
    rounds: int,
    folder: Path,
    device: torch.device,
    optional: Sequence[str] = ("encoder.attention_dropout=0",),
) -> list[LeadRow]:
    """Time three steps of a case as it is and with each lead left out, in turn.

    Args:
        optional: the overrides of `OPTIONAL`.
    """
    variants = {"": Lead(""), OPTIONAL: Lead(OPTIONAL, optional)}
    variants |= {lead.name: lead for lead in LEADS}
    parts = {}
    for number, (name, lead) in enumerate(variants.items()):
        built = built_case(case, 3, folder / str(number), *lead.without)
        lead.change(built)
        parts[name] = OurStep(built, device).all_steps(built.batches())
    times = interleaved(parts, rounds, device)
    plain = times[""]
    rows = [LeadRow(lead.name, ratio(times[lead.name], plain), True) for lead in LEADS]
    return [*rows, LeadRow(OPTIONAL, ratio(plain, times[OPTIONAL]), False)]
