"""Measures ratios of times, and the rate of matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.benchmark import Timer

from tartan.methods.measuring import now


@dataclass(frozen=True)
class Ratio:
    """The ratio of two times, over pairs that were measured one after the other.

    Attributes:
        median: median of the pairs' ratios.
        low: their lower quartile.
        high: their upper quartile.
        pairs: number of pairs.
    """

    median: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


def ratio(times: Sequence[float], of: Sequence[float]) -> Ratio:
    """Return the ratio of `times` to `of`, pair by pair.

    Args:
        times: the numerators [s].
        of: the denominators, as many [s].

    Raises:
        ValueError: the numbers of measurements differ, or there are none.
    """
    if len(times) != len(of) or not times:
        raise ValueError(f"cannot pair {len(times)} measurements with {len(of)}")
    low, median, high = np.quantile(np.divide(times, of), (0.25, 0.5, 0.75))
    return Ratio(float(median), float(low), float(high), len(times))


def time_interleaved(
    parts: Mapping[str, Callable[[], object]], rounds: int, device: torch.device
) -> dict[str, list[float]]:
    """Time several functions in turn, after a round that is not counted.

    Every second round goes backwards, so that no function always follows the same one.

    Args:
        parts: the functions by name.
        rounds: number of rounds.
        device: the device, whose work is part of the time.

    Returns:
        The time of each function in each round [s].
    """
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for number in range(rounds + 1):
        names = list(parts)
        for name in names if number % 2 else names[::-1]:
            began = now(device)
            parts[name]()
            if number:
                seconds[name].append(now(device) - began)
    return seconds


def measure_matrix_rate(device: torch.device, dtype: torch.dtype, seconds: float = 1.0) -> float:
    """Measure the throughput of products of large square matrices [FLOP/s].

    Args:
        device: the device.
        dtype: type of the matrices.
        seconds: duration of the measurement [s].
    """
    size = 8192 if device.type == "cuda" else 1536
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    operands = {"left": left, "right": right}
    timer = Timer("left @ right", globals=operands, num_threads=torch.get_num_threads())
    return 2 * size**3 / timer.blocked_autorange(min_run_time=seconds).mean
