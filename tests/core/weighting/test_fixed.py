"""Weights that stay: uniform and given ones."""

from __future__ import annotations

import pytest
import torch

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


@pytest.mark.parametrize("values", [{"end_task": 1}, {"end_task": 0, "tapt": 0}])
def test_static_weights_that_name_other_tasks_or_none_are_refused(values):
    with pytest.raises(ValueError, match="values must"):
        Static(["end_task", "tapt"], values)
