"""Divides a batch into whole numbers of examples, by given shares."""

from __future__ import annotations

from collections.abc import Sequence


def apportioned(total: int, shares: Sequence[float]) -> list[int]:
    """Return whole numbers that sum to `total`, in proportion to `shares`; none is 0.

    They are found by the largest remainder (of shares that are equal to nine digits, the first is
    preferred); a share that would get nothing then takes one from the largest.

    Args:
        total: the sum of the numbers.
        shares: the shares, which sum to 1.

    Raises:
        ValueError: there are more shares than `total`.
    """
    if len(shares) > total:
        raise ValueError(f"{total} examples cannot be shared by {len(shares)}")
    exact = [round(total * share, 9) for share in shares]
    parts = [int(value) for value in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: -round(exact[i] - parts[i], 9))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    while 0 in parts:
        parts[parts.index(max(parts))] -= 1
        parts[parts.index(0)] += 1
    return parts
