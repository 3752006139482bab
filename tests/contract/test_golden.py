"""Weights after three steps, of every method and weighting, are those in `golden.json`."""

from __future__ import annotations

import json

import pytest

from tests.contract.golden import CASES, FILE, trained

GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))
NEAR = 1e-10
"""Processors add in different orders; on one, the numbers come out to 1e-14."""


@pytest.mark.parametrize("case", CASES)
def test_three_steps_in_float64(case, tmp_path):
    numbers = trained(case, tmp_path)
    assert numbers.keys() == GOLDEN[case].keys()
    for name, expected in GOLDEN[case].items():
        assert numbers[name] == pytest.approx(expected, abs=NEAR, rel=0)


def test_methods_differ():
    bodies = [tuple(numbers["body"]) for numbers in GOLDEN.values()]
    assert len(set(bodies)) == len(bodies)
