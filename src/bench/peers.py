"""Our steps against others' on the same examples, in equal batches and precision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from src.bench.by_hand import OurStep
from src.bench.case import BuiltCase, Case, built_case
from src.bench.measure import Ratio, ratio
from src.bench.published_step import PublishedStep
from src.bench.torchjd_step import TorchJDStep
from src.bench.transformers_trainer import classifier_with, masked_lm_with, trainer_times
from src.core.clock import now
from src.encoders.text_encoder import require_text_encoder


@dataclass(frozen=True)
class PeerRow:
    """The time of another's step, in multiples of ours."""

    peer: str
    case: str
    ratio: Ratio


def against_published(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """META-TARTAN against a step as the authors' code takes it."""
    built = built_case(case, rounds + 1, folder)
    encoder = require_text_encoder(built.prepared.encoder, "the bench")
    size = int(built.config.micro_batch_size)
    peer = PublishedStep(built, encoder.tokenizer.pad_token_id, size, device)
    return PeerRow("published code's step", _name(case), _in_turn(built, peer, rounds, device))


def against_torchjd(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """A Gramian-based weighting against TorchJD's `mtl_backward`; batches in one piece."""
    whole = [f"micro_batch_size={case.batch_size}", "weighting=upgrad"]
    built = built_case(case, rounds + 1, folder, *whole)
    peer = TorchJDStep(built, "UPGrad", device)
    name = f"{_name(case)}, weighting=upgrad"
    return PeerRow("TorchJD mtl_backward", name, _in_turn(built, peer, rounds, device))


def _in_turn(built: BuiltCase, peer: Any, rounds: int, device: torch.device) -> Ratio:
    ours = OurStep(built, device)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds + 1):
        # where each takes it: the published step puts its parts together on the CPU
        batches = {True: built.batch(number, device), False: built.batch(number, peer.takes_from)}
        for own in (True, False) if number % 2 else (False, True):
            began = now(device)
            (ours if own else peer).step(batches[own])
            if number:
                seconds[own].append(now(device) - began)
    return ratio(seconds[False], seconds[True])


def against_trainer(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """Fine-tuning or TAPT against Hugging Face's Trainer on the same texts.

    Fetching batches counts on both sides; the examples of a batch are each side's own.
    """
    built = built_case(case, rounds + 2, folder)
    prepared = built.prepared
    masked_lm = case.method == "tapt"
    body: Any = built.module.body
    labels = len(prepared.end_task.labels)
    theirs = masked_lm_with(body) if masked_lm else classifier_with(body, labels)
    ours, own = OurStep(built, device), []

    def after_step(number: int) -> None:
        began = now(device)
        ours.step(built.batch(number, device))
        own.append(now(device) - began)

    rows = prepared.splits.train
    if masked_lm:
        (_, examples), *_ = prepared.auxiliaries.values()
        rows = examples.rows
    times = trainer_times(
        theirs, require_text_encoder(prepared.encoder, "the bench").tokenizer, rows,
        masked_lm=masked_lm, batch_size=case.batch_size, steps=rounds + 2,
        lr=built.module.optimisation.body_lr, bf16=built.precision.startswith("bf16"),
        folder=folder / "trainer", after_step=after_step,
    )  # fmt: skip
    # the first two steps allocate
    return PeerRow("Hugging Face Trainer", _name(case), ratio(times[2:], own[2:]))


def _name(case: Case) -> str:
    tasks = "" if case.method in ("finetune", "tapt") else f", {case.tasks} auxiliary"
    return f"{case.method}{tasks}"
