"""Shares as whole numbers of examples."""

from __future__ import annotations

import numpy as np
import pytest

from tartan.core.weighting.apportioned import apportioned


@pytest.mark.parametrize(
    ("total", "shares", "expected"),
    [
        (12, [1 / 3] * 3, [4, 4, 4]),
        (13, [1 / 3] * 3, [5, 4, 4]),
        (10, [0.26, 0.37, 0.37], [2, 4, 4]),
        (10, [0.98, 0.01, 0.01], [8, 1, 1]),
        (3, [0.9, 0.05, 0.05], [1, 1, 1]),
    ],
)
def test_the_largest_remainders_are_rounded_up(total, shares, expected):
    assert apportioned(total, shares) == expected


def test_it_sums_to_the_total_and_leaves_nobody_out():
    rng = np.random.default_rng(0)
    for _ in range(300):
        count = int(rng.integers(1, 9))
        total = int(rng.integers(count, 60))
        shares = rng.dirichlet(np.full(count, 0.3)).tolist()
        parts = apportioned(total, shares)
        assert sum(parts) == total
        assert min(parts) >= 1
        if all(total * share >= 1 for share in shares):
            assert all(abs(p - total * s) < 1 for p, s in zip(parts, shares, strict=True))


def test_more_shares_than_examples_are_refused():
    with pytest.raises(ValueError, match="2 examples cannot be shared by 3"):
        apportioned(2, [1 / 3] * 3)
