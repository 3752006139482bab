"""Defines the metric by which checkpoints are chosen, and which values of it are better."""

from __future__ import annotations

import math
from dataclasses import dataclass

PERPLEXITY = "perplexity"
"""Exponential of the mean cross-entropy of held-out masked tokens."""


@dataclass(frozen=True)
class Monitor:
    """A metric by name, and which of two values is better."""

    name: str

    @property
    def lower_is_better(self) -> bool:
        return self.name == PERPLEXITY

    @property
    def mode(self) -> str:
        """`min` or `max`: the direction in which the metric improves."""
        return "min" if self.lower_is_better else "max"

    def merit(self, value: float) -> float:
        """Return `value` such that higher is better; NaN is worse than any number."""
        if math.isnan(value):
            return -math.inf
        return -value if self.lower_is_better else value
