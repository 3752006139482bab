"""Holm's correction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartan.report.statistics.holm import holm

P = st.lists(st.floats(0, 1), max_size=12)


def test_four_by_hand():
    """0.005 x 4, 0.01 x 3, then 0.03 x 2 and 0.04 x 1, which may not fall below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_few():
    assert holm([]) == []
    assert holm([0.03]) == [0.03]
    assert holm([0.9, 0.8]) == [1, 1]


@given(P)
def test_between_doing_nothing_and_bonferroni_and_in_the_same_order(p):
    adjusted = holm(p)
    for raw, one in zip(p, adjusted, strict=True):
        assert min(1, raw) <= one <= min(1, raw * len(p)) + 1e-12
    by_raw = [one for _, one in sorted(zip(p, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)


@given(P, st.floats(0.001, 0.5))
def test_what_is_rejected_is_what_stepping_down_rejects(p, level):
    """Holm as he words it: go on from the smallest until one is above level / how many are left."""
    rejected = set()
    for step, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[index] * (len(p) - step) > level:
            break
        rejected.add(index)
    assert {i for i, one in enumerate(holm(p)) if one <= level} == rejected
