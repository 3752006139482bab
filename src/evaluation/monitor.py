"""The metric that an evaluation is judged by."""

from __future__ import annotations

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
        """`min` or `max`: what training does to it."""
        return "min" if self.lower_is_better else "max"

    def merit(self, value: float) -> float:
        """`value` as a number that is higher where the metric is better."""
        return -value if self.lower_is_better else value
