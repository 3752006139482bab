"""Weights that stay: uniform and given ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tartan.core.weighting.base import apportioned
from tartan.core.weighting.fixed import EndTaskShare, Static, Uniform
from tests.core.steps import GivenStep


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        (Uniform(["a", "b", "c", "d"]), [0.25] * 4),
        (Static(["end_task", "tapt"], {"tapt": 1, "end_task": 3}), [0.75, 0.25]),
        (EndTaskShare(["end_task"], share=0.8), [1]),
        (EndTaskShare(["end_task", "dapt", "tapt"], share=0.8), [0.8, 0.1, 0.1]),
    ],
)
def test_weights_are_those_asked_for_and_sum_to_one(weighting, expected):
    given = GivenStep(torch.randn(len(weighting.task_names), 3))
    assert given.run(weighting).tolist() == pytest.approx(expected)


NAMES = ["end_task", "a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        (EndTaskShare(NAMES, share=0.8), [0.8, 0.1, 0.1]),
        (Static(NAMES, {"end_task": 6, "a": 3, "b": 2, "c": 1, "d": 0}), [0.5, 0.375, 0.125]),
        (Static(NAMES, {"end_task": 6, "a": 0, "b": 2, "c": 0, "d": 0}), [1, 0, 0]),
        (Uniform(NAMES), [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_where_tasks_are_sampled_the_end_task_keeps_its_share(weighting, expected):
    given = GivenStep(torch.randn(3, 3), names=["end_task", "a", "c"])
    assert given.run(weighting, sampled=True).tolist() == pytest.approx(expected)


def test_without_an_end_task_sampled_tasks_share_in_proportion_whichever_comes_first():
    weighting = Static(["a", "b", "c"], {"a": 1, "b": 2, "c": 3})
    for names, expected in ((["a", "c"], [0.25, 0.75]), (["b", "c"], [0.4, 0.6])):
        given = GivenStep(torch.randn(2, 3), names=names)
        assert given.run(weighting, sampled=True).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("values", [{"end_task": 1}, {"end_task": 0, "tapt": 0}])
def test_static_weights_that_name_other_tasks_or_none_are_refused(values):
    with pytest.raises(ValueError, match="values must"):
        Static(["end_task", "tapt"], values)


@pytest.mark.parametrize(
    ("total", "shares", "expected"),
    [
        (13, [1 / 3] * 3, [5, 4, 4]),
        (10, [0.26, 0.37, 0.37], [2, 4, 4]),
        (10, [0.98, 0.01, 0.01], [8, 1, 1]),
        (3, [0.9, 0.05, 0.05], [1, 1, 1]),
    ],
)
def test_the_largest_remainders_are_rounded_up(total, shares, expected):
    assert apportioned(total, shares) == expected


def test_examples_sum_to_the_total_and_leave_nobody_out():
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
