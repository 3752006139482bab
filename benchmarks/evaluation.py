"""Measures the throughput of evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from lightning.fabric.utilities import move_data_to_device

from benchmarks.case import Case, build_case
from benchmarks.measure import Ratio, ratio
from benchmarks.row import Row
from tartan.methods.measuring import now
from tartan.objectives.layout import count_tokens_and_padding


@dataclass(frozen=True)
class EvaluationRow(Row):
    """The throughput of evaluations.

    Attributes:
        encoder: name of the encoder.
        examples_per_second: median and quartiles over passes through dev.
        tokens_per_second: the median.
    """

    title = "evaluation of dev"
    encoder: str
    examples_per_second: Ratio
    tokens_per_second: float


def measure_evaluation(
    case: Case, encoder: str, rounds: int, folder: Path, device: torch.device
) -> EvaluationRow:
    """Evaluate the case on dev `rounds` times, after a first time that is not counted."""
    built = build_case(case, 1, folder)
    module = built.module.to(device).eval()
    split = built.data.evaluation("dev", device.type, built.precision)
    batches = [move_data_to_device(split[index], device) for index in range(len(split))]
    examples = sum(batch.examples for batch in batches)
    tokens, _ = count_tokens_and_padding(batches)
    seconds = []
    with torch.inference_mode(), built.autocast(device):
        for _ in range(rounds + 1):
            began = now(device)
            for index, batch in enumerate(batches):
                module.validation_step(batch, index)
            seconds.append(now(device) - began)
    rates = ratio([float(examples)] * rounds, seconds[1:])
    return EvaluationRow(encoder, rates, tokens / examples * rates.median)
