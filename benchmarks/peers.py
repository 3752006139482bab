"""Compares this program's steps with other programs', on the same examples and precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import TrainingArguments

from benchmarks.case import BuiltCase, Case, build_case
from benchmarks.manual_step import ManualStep
from benchmarks.measure import Ratio, ratio, time_interleaved
from benchmarks.published_step import PublishedStep
from benchmarks.row import Row
from benchmarks.torchjd_step import TorchJDStep
from benchmarks.transformers_trainer import trainer_times, transformers_model
from tartan.core.task import StepBatch
from tartan.encoders.text_encoder import require_text_encoder
from tartan.methods.measuring import now


@dataclass(frozen=True)
class PeerRow(Row):
    """The time of another program's step, divided by that of this program's.

    Attributes:
        peer: name of the other program.
        case: name of the case.
        ratio: the ratio of times.
    """

    title = "time of another program's step, divided by this one's"
    peer: str
    case: str
    ratio: Ratio


def compare_with_published(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """Compare META-TARTAN with a step like that of the authors' code."""
    built = build_case(case, rounds + 1, folder)
    peer = PublishedStep(built, int(built.config.micro_batch_size), device)
    # it makes its micro-batches on the CPU
    batches = built.batches(torch.device("cpu"))
    found = _ratio_to(peer.step, batches, built, rounds, device)
    return PeerRow("published code's step", _name(case), found)


def compare_with_torchjd(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """Compare a Gramian-based weighting with TorchJD's `mtl_backward`, on unsplit batches."""
    whole = [f"micro_batch_size={case.batch_size}", "weighting=upgrad"]
    built = build_case(case, rounds + 1, folder, *whole)
    peer = TorchJDStep(built, device)
    found = _ratio_to(peer.step, built.batches(device), built, rounds, device)
    return PeerRow("TorchJD mtl_backward", f"{_name(case)}, weighting=upgrad", found)


def _ratio_to(
    peer: Callable[[StepBatch], None],
    batches: Sequence[StepBatch],
    built: BuiltCase,
    rounds: int,
    device: torch.device,
) -> Ratio:
    """Return the time of the peer's step, divided by that of the case's own, on equal batches."""

    def on_each(
        step: Callable[[StepBatch], None], batches: Sequence[StepBatch]
    ) -> Callable[[], None]:
        left = iter(batches)
        return lambda: step(next(left))

    own = on_each(ManualStep(built, device).step, built.batches(device))
    times = time_interleaved({"own": own, "peer": on_each(peer, batches)}, rounds, device)
    return ratio(times["peer"], times["own"])


def compare_with_trainer(case: Case, rounds: int, folder: Path, device: torch.device) -> PeerRow:
    """Compare fine-tuning or TAPT with Hugging Face's Trainer on the same texts.

    Both times include fetching batches, for which each program draws its own examples.
    """
    built = build_case(case, rounds + 2, folder)
    prepared = built.prepared
    own, own_times = ManualStep(built, device), []

    def after_step(number: int) -> None:
        began = now(device)
        own.step(built.batch(number, device))
        own_times.append(now(device) - began)

    rows = prepared.splits.train
    labels: int | None = len(prepared.end_task.labels)
    if case.method == "tapt":
        ((_, examples),) = prepared.auxiliaries.values()
        rows, labels = examples.rows, None
    body: Any = built.module.body
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=case.batch_size,
        max_steps=rounds + 2,
        learning_rate=built.module.optimisation.body_lr,
        bf16=built.precision.startswith("bf16"),
        use_cpu=device.type == "cpu",
        save_strategy="no",
        report_to=[],
        logging_strategy="no",
        disable_tqdm=True,
        seed=0,
    )
    tokenizer = require_text_encoder(prepared.encoder, "the bench").tokenizer
    times = trainer_times(transformers_model(body, labels), tokenizer, rows, arguments, after_step)
    # the first two steps allocate memory
    return PeerRow("Hugging Face Trainer", _name(case), ratio(times[2:], own_times[2:]))


def _name(case: Case) -> str:
    tasks = "" if case.method in ("finetune", "tapt") else f", {case.tasks} auxiliary"
    return f"{case.method}{tasks}"
