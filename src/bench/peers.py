"""Compares this program's steps with other programs', on the same examples and precision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from src.bench.case import BuiltCase, Case, build_case
from src.bench.manual_step import ManualStep
from src.bench.measure import Ratio, ratio
from src.bench.published_step import PublishedStep
from src.bench.row import Row
from src.bench.torchjd_step import TorchJDStep
from src.bench.transformers_trainer import classifier_around, masked_lm_around, trainer_times
from src.core.clock import now
from src.encoders.text_encoder import require_text_encoder


@dataclass(frozen=True)
class PeerRow(Row):
    """The time of another program's step, divided by that of this program's.

    Attributes:
        peer: name of the other program.
        case: name of the case.
        ratio: the ratio of times.
    """

    title = "time of another program's step, divided by this one's"
    columns = ("program", "case", "ratio")
    peer: str
    case: str
    ratio: Ratio

    def cells(self) -> tuple[str, ...]:
        return self.peer, self.case, str(self.ratio)


def compare_with_published(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """Compare META-TARTAN with a step like that of the authors' code."""
    built = build_case(case, rounds + 1, folder)
    encoder = require_text_encoder(built.prepared.encoder, "the bench")
    size = int(built.config.micro_batch_size)
    peer = PublishedStep(built, encoder.tokenizer.pad_token_id, size, device)
    return PeerRow("published code's step", _name(case), _ratio_to(peer, built, rounds, device))


def compare_with_torchjd(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """Compare a Gramian-based weighting with TorchJD's `mtl_backward`, on unsplit batches."""
    whole = [f"micro_batch_size={case.batch_size}", "weighting=upgrad"]
    built = build_case(case, rounds + 1, folder, *whole)
    peer = TorchJDStep(built, "UPGrad", device)
    name = f"{_name(case)}, weighting=upgrad"
    return PeerRow("TorchJD mtl_backward", name, _ratio_to(peer, built, rounds, device))


def _ratio_to(peer: Any, built: BuiltCase, rounds: int, device: torch.device) -> Ratio:
    """Return the time of the peer's step, divided by that of the case's own, on equal batches."""
    own = ManualStep(built, device)
    own_seconds: list[float] = []
    peer_seconds: list[float] = []
    for number in range(rounds + 1):
        # the published step makes its micro-batches on the CPU
        runs = [
            (own, built.batch(number, device), own_seconds),
            (peer, built.batch(number, peer.batch_device), peer_seconds),
        ]
        for step, batch, seconds in runs if number % 2 else runs[::-1]:
            began = now(device)
            step.step(batch)
            if number:
                seconds.append(now(device) - began)
    return ratio(peer_seconds, own_seconds)


def compare_with_trainer(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """Compare fine-tuning or TAPT with Hugging Face's Trainer on the same texts.

    Both times include fetching batches, for which each program draws its own examples.
    """
    built = build_case(case, rounds + 2, folder)
    prepared = built.prepared
    masked_lm = case.method == "tapt"
    body: Any = built.module.body
    labels = len(prepared.end_task.labels)
    model = masked_lm_around(body) if masked_lm else classifier_around(body, labels)
    own, own_times = ManualStep(built, device), []

    def after_step(number: int) -> None:
        began = now(device)
        own.step(built.batch(number, device))
        own_times.append(now(device) - began)

    rows = prepared.splits.train
    if masked_lm:
        (_, examples), *_ = prepared.auxiliaries.values()
        rows = examples.rows
    times = trainer_times(
        model, require_text_encoder(prepared.encoder, "the bench").tokenizer, rows,
        masked_lm=masked_lm, batch_size=case.batch_size, steps=rounds + 2,
        lr=built.module.optimisation.body_lr, bf16=built.precision.startswith("bf16"),
        folder=folder / "trainer", after_step=after_step,
    )  # fmt: skip
    # the first two steps allocate memory
    return PeerRow("Hugging Face Trainer", _name(case), ratio(times[2:], own_times[2:]))


def _name(case: Case) -> str:
    tasks = "" if case.method in ("finetune", "tapt") else f", {case.tasks} auxiliary"
    return f"{case.method}{tasks}"
