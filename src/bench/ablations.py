"""Ablations of ways of saving time: the same batches with and without each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from src.bench.by_hand import OurStep
from src.bench.case import BuiltCase, Case, built_case
from src.bench.measure import Ratio, interleaved, ratio
from src.core.clock import now
from src.cpu.attention import attention
from src.cpu.dropout import replace_dropout
from src.cpu.packed_attention import Packing
from src.cuda.packed_row import PackedRow
from src.encoders.masked_lm_head import MaskedLMHead


@dataclass(frozen=True)
class Ablation:
    """A way of saving time, described by what a step without it is like.

    Attributes:
        name: what it is.
        without: overrides that leave it out, and `change`, where that takes more.
    """

    name: str
    without: Sequence[str] = ()
    change: Callable[[BuiltCase], None] = lambda case: None


def _torchs_dropout(case: BuiltCase) -> None:
    replace_dropout(case.module, nn.Dropout)


def _torchs_attention(case: BuiltCase) -> None:
    body: Any = case.module.body
    body.set_attn_implementation(_TORCHS)


def _of_torch(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    packing: Packing | PackedRow | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Torch's attention, within each text of a packed row."""
    torchs = AttentionInterface()["sdpa"]
    if isinstance(packing, PackedRow):  # whose kernels are not ours
        return attention(module, query, key, value, attention_mask, packing=packing, **options)
    if packing is None:
        found: tuple[Tensor, Tensor | None] = torchs(
            module, query, key, value, attention_mask, **options
        )
        return found

    def of_block(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
        attended: Tensor = torchs(module, q, k, v, allowed, **options)[0]
        return attended

    return packing.attend(of_block, query, key, value), None


_TORCHS = "tartan_bench_torchs"
AttentionInterface.register(_TORCHS, _of_torch)
AttentionMaskInterface.register(_TORCHS, AttentionMaskInterface()["sdpa"])


def _torchs_embedding(case: BuiltCase) -> None:
    body: Any = case.module.body
    ours = body.get_input_embeddings()
    rows, width = ours.weight.shape
    plain = nn.Embedding(rows, width, ours.padding_idx)
    plain.weight = ours.weight
    body.set_input_embeddings(plain)


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


ABLATIONS = (
    Ablation("texts of a micro-batch as one row of tokens", ["packed=false"]),
    Ablation("16 random bits an element for dropout", change=_torchs_dropout),
    Ablation("the same in attention, whose gradient is its own", change=_torchs_attention),
    Ablation("embeddings' gradients added row by row", change=_torchs_embedding),
    Ablation("fused AdamW", change=_unfused),
)
FEW_SHAPES = "masked positions filled up to multiples of 16"
"""Saves building kernels for shapes that are new: measured on batches that are."""
OPTIONAL = "no attention dropout: fused attention"
"""Measured the other way round: overrides put it in."""


@dataclass(frozen=True)
class AblationRow:
    """The time of a step without a way of saving time, in multiples of a step with it.

    Attributes:
        used: whether runs use it unless told otherwise.
    """

    name: str
    ratio: Ratio
    used: bool


def measure_ablations(
    case: Case,
    rounds: int,
    folder: Path,
    device: torch.device,
    optional: Sequence[str] = ("encoder.attention_dropout=0",),
) -> list[AblationRow]:
    """Time three steps of a case as it is and with each way of saving time left out, in turn.

    Args:
        optional: the overrides of `OPTIONAL`.
    """
    variants = {"": Ablation(""), OPTIONAL: Ablation(OPTIONAL, optional)}
    variants |= {ablation.name: ablation for ablation in ABLATIONS}
    parts = {}
    for number, (name, ablation) in enumerate(variants.items()):
        built = built_case(case, 3, folder / str(number), *ablation.without)
        ablation.change(built)
        parts[name] = OurStep(built, device).all_steps(built.batches(device))
    times = interleaved(parts, rounds, device)
    plain = times[""]
    rows = [
        AblationRow(ablation.name, ratio(times[ablation.name], plain), True)
        for ablation in ABLATIONS
    ]
    rows.append(AblationRow(FEW_SHAPES, _with_more_shapes(case, rounds, folder, device), True))
    return [*rows, AblationRow(OPTIONAL, ratio(plain, times[OPTIONAL]), False)]


def _with_more_shapes(case: Case, rounds: int, folder: Path, device: torch.device) -> Ratio:
    """Without `FEW_SHAPES` against with it, in seconds a token, no batch being taken twice.

    Two of the rounds, of three batches each, do not count.
    """
    steps = 3
    built = [built_case(case, 2 * steps * (rounds + 2), folder / f"shapes{i}") for i in (0, 1)]
    for head in built[1].module.heads.values():
        if isinstance(head, MaskedLMHead):
            head.row_multiple = 1
    ours = [OurStep(own, device) for own in built]
    seconds: tuple[list[float], list[float]] = ([], [])
    taken = 0
    for number in range(rounds + 2):
        for which in (0, 1) if number % 2 else (1, 0):
            batches = [built[which].batch(step, device) for step in range(taken, taken + steps)]
            taken += steps
            began = now(device)
            ours[which].all_steps(batches)()
            tokens = sum(part.tokens for batch in batches for part in batch.tasks.values())
            if number > 1:
                seconds[which].append((now(device) - began) / tokens)
    return ratio(seconds[1], seconds[0])
