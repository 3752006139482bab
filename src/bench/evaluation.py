"""The speed of evaluations by a trained classifier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from lightning.fabric.utilities import move_data_to_device

from src.bench.case import Case, built_case
from src.bench.measure import Ratio, ratio
from src.core.clock import now
from src.objectives.layout import count_tokens_and_padding


@dataclass(frozen=True)
class EvaluationRow:
    """Throughput of evaluations.

    Attributes:
        examples_per_second: median and quartiles over rounds through the dev split.
        tokens_per_second: the median.
    """

    encoder: str
    examples_per_second: Ratio
    tokens_per_second: float


def measure_evaluation(
    case: Case, encoder: str, rounds: int, folder: Path, device: torch.device
) -> EvaluationRow:
    """Evaluate the case's dev split, once before it counts."""
    built = built_case(case, 1, folder)
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
