"""Holm's correction for looking at several p-values at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given; comparing them with a level bounds the family's error.

    The k-th smallest of n is multiplied by n - k + 1, is at least the adjusted one before it, and
    at most 1 (Holm, 1979).
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
