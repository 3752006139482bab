"""META-TARTAN's weights: properties that hold for any gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tartan.core.weighting.meta import Meta
from tests.core.steps import GivenStep

cosines = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=6)
etas = st.floats(0, 2, width=32)
orders = st.sampled_from(["update_then_step", "step_then_update"])


def steps(weighting, rows):
    """Apply one step for each row of cosines; returns the weights applied in the last."""
    for row in rows:
        alpha = GivenStep.of_cosines(row).run(weighting)
    return alpha


def new(count, eta=0.5, order="update_then_step"):
    return Meta([f"t{i}" for i in range(count)], eta=eta, order=order).double()


@given(cosines, etas)
def test_the_streamed_weights_are_the_softmax_of_the_new_logits(row, eta):
    weighting = new(len(row), eta)
    logits = weighting.logits + eta * torch.tensor(row, dtype=torch.float64)
    alpha = steps(weighting, [row])
    torch.testing.assert_close(alpha, logits.softmax(0))
    torch.testing.assert_close(weighting.logits, logits)


@given(cosines, etas, orders, st.floats(-50, 50))
def test_a_constant_added_to_all_logits_changes_nothing(row, eta, order, constant):
    plain, shifted = new(len(row), eta, order), new(len(row), eta, order)
    shifted.logits.add_(constant)
    torch.testing.assert_close(
        steps(shifted, [row] * 2), steps(plain, [row] * 2), atol=1e-9, rtol=1e-9
    )


def test_step_then_update_lags_by_one_step():
    first = steps(new(2, order="step_then_update"), [[1.0, -1.0]])
    torch.testing.assert_close(first, torch.tensor([0.5, 0.5], dtype=torch.float64))
    second = steps(new(2, order="step_then_update"), [[1.0, -1.0], [0.0, 0.0]])
    early = steps(new(2), [[1.0, -1.0]])
    torch.testing.assert_close(second, early)


@pytest.mark.parametrize("order", ["update_then_step", "step_then_update"])
def test_the_weights_begin_where_they_are_told_to(order):
    weighting = Meta(["end_task", "dapt", "tapt"], eta=0.0, order=order, start=0.9)
    weights = steps(weighting, [[1.0, -0.5, 0.3]])
    assert list(weights) == pytest.approx([0.9, 0.05, 0.05])
    assert weighting.logits.softmax(0).tolist() == pytest.approx([0.9, 0.05, 0.05])


def test_extreme_logits_do_not_overflow():
    weighting = new(2)
    weighting.logits.copy_(torch.tensor([1e4, -1e4]))
    alpha = steps(weighting, [[1.0, 1.0]])
    torch.testing.assert_close(alpha, torch.tensor([1.0, 0.0], dtype=torch.float64))
