"""Defines the metric by which checkpoints are chosen, and which values of it are better."""

from __future__ import annotations

import math
from dataclasses import dataclass

PERPLEXITY = "perplexity"
"""Exponential of the mean cross-entropy of held-out masked tokens."""


@dataclass(frozen=True)
class Monitor:
    """A metric by name; `mode` is the direction in which it improves, `min` or `max`."""

    name: str

    @property
    def mode(self) -> str:
        return "min" if self.name == PERPLEXITY else "max"

    def merit(self, value: float) -> float:
        """Return `value` such that higher is better; NaN is worse than any number."""
        if math.isnan(value):
            return -math.inf
        return -value if self.mode == "min" else value
