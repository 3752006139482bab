"""Adjusts several p-values by Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p-values, in the given order.

    Comparing them with a level bounds the probability of any false rejection by it. The k-th
    smallest of n is multiplied by n - k + 1, is at least the adjusted one before it, and at most 1
    (Holm, 1979).
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
