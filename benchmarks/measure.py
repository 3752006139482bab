"""Measures ratios of times and rates of matrix products, and prints rows as one table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from omegaconf import DictConfig, OmegaConf
from torch.utils.benchmark import Timer

from tartan.methods.cost import now


@dataclass(frozen=True)
class Ratio:
    """The ratio of two times over pairs that were measured in turn: median and quartiles."""

    median: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


def ratio(times: Sequence[float], of: Sequence[float]) -> Ratio:
    """Return the ratio of `times` to as many of `of`, pair by pair."""
    pairs = [a / b for a, b in zip(times, of, strict=True)]
    low, median, high = np.quantile(pairs, (0.25, 0.5, 0.75))
    return Ratio(float(median), float(low), float(high), len(pairs))


def time_interleaved(
    parts: Mapping[str, Callable[[], object]], rounds: int, device: torch.device
) -> dict[str, list[float]]:
    """Time several functions in turn, after a round that is not counted.

    Every second round goes backwards, so that no function always follows the same one.
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
    """Measure the throughput of products of large square matrices [FLOP/s]."""
    size = 8192 if device.type == "cuda" else 1536
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    operands = {"left": left, "right": right}
    timer = Timer("left @ right", globals=operands, num_threads=torch.get_num_threads())
    return 2 * size**3 / timer.blocked_autorange(min_run_time=seconds).mean


@dataclass(frozen=True)
class Row:
    """A measurement: what is measured against what, in which case."""

    section: str
    what: str
    case: str
    ratio: Ratio | None = None  # of times
    seconds: float | None = None  # median time of a step
    tokens_s: float | None = None  # without padding
    padding: float | None = None  # share of the positions that go through the body [%]
    matrix: float | None = None  # operations a second, of what large square matrices reach [%]
    peak_mib: float | None = None  # of a step, beyond parameters and optimiser state
    waits: str | None = None  # lines at which the host waited for the GPU in a step


def options_of(name: str, arguments: Sequence[str]) -> DictConfig:
    """Return the options in `benchmarks/conf/NAME.yaml`, changed by `KEY=VALUE` arguments."""
    path = Path(__file__).parent / "conf" / f"{name}.yaml"
    if {"-h", "--help"} & set(arguments):
        print(path.read_text(encoding="utf-8"))
        sys.exit()
    options = OmegaConf.load(path)
    OmegaConf.set_struct(options, True)
    merged = OmegaConf.merge(options, OmegaConf.from_dotlist(list(arguments)))
    assert isinstance(merged, DictConfig)
    return merged


def show(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print rows as a table, without columns that are empty in all of them."""
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    print(f"\n{title}\n" + frame.to_string(index=False, na_rep="", float_format="{:,.4g}".format))
