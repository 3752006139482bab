"""How the page of results writes differences."""

from __future__ import annotations

import pytest

from studies.format import bounds
from tartan.evaluation.statistics import Interval


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.003, 0.014, ("+0.3", "+1.4")),
        (0.0002, 0.014, ("+0.02", "+1.4")),
        (-0.014, -0.0002, ("-1.4", "-0.02")),
        (-0.0002, 0.014, ("-0.0", "+1.4")),
    ],
)
def test_a_bound_looks_like_0_only_where_the_interval_contains_it(low, high, words):
    assert bounds(Interval(low, high), sign="+") == words
