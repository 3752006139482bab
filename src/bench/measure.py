"""Times of things against each other within one run, and rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from src.core.clock import now


@dataclass(frozen=True)
class Ratio:
    """The ratio of the times of two things, over pairs measured one after the other.

    Attributes:
        median: of the pairs' ratios.
        low: their lower quartile.
        high: their upper quartile.
        pairs: how many there were.
    """

    median: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


def ratio(times: Sequence[float], of: Sequence[float]) -> Ratio:
    """The ratio of `times` to `of`, both in seconds, the two of a pair at the same place.

    Raises:
        ValueError: the numbers of measurements differ, or there are none.
    """
    if len(times) != len(of) or not times:
        raise ValueError(f"cannot pair {len(times)} measurements with {len(of)}")
    low, median, high = np.quantile(np.divide(times, of), (0.25, 0.5, 0.75))
    return Ratio(float(median), float(low), float(high), len(times))


def interleaved(
    parts: Mapping[str, Callable[[], object]], rounds: int, device: torch.device
) -> dict[str, list[float]]:
    """Seconds of each part in each round, after one round that does not count.

    Every second round goes backwards, so that no part always follows the same one.
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


def matrix_rate(device: torch.device, dtype: torch.dtype, seconds: float = 1.0) -> float:
    """Floating-point operations a second that products of large square matrices reach."""
    size = 8192 if device.type == "cuda" else 1536
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    left @ right
    done, began = 0, now(device)
    while now(device) - began < seconds:
        for _ in range(4):
            left @ right
        done += 4
    return done * 2 * size**3 / (now(device) - began)


def products_rate(
    layers: Mapping[tuple[int, int], int],
    rows: int,
    device: torch.device,
    dtype: torch.dtype,
    seconds: float = 1.0,
) -> float:
    """Floating-point operations a second that the products of linear layers reach by themselves.

    Those of a forward pass over `rows`, of the inputs' gradient and of the weights'.

    Args:
        layers: how many there are of each `(outputs, inputs)`.
    """
    operands = {
        (out, into): [
            torch.randn(shape, device=device, dtype=dtype)
            for shape in ((rows, into), (out, into), (rows, out))
        ]
        for out, into in layers
    }

    def products() -> None:
        for sizes, number in layers.items():
            inputs, weights, gradient = operands[sizes]
            for _ in range(number):
                inputs @ weights.T
                gradient @ weights
                gradient.T @ inputs

    products()
    done, began = 0, now(device)
    while now(device) - began < seconds:
        products()
        done += 1
    each = sum(3 * 2 * rows * out * into * number for (out, into), number in layers.items())
    return done * each / (now(device) - began)
