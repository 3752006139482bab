"""Equal cost: steps such that every method spends as many operations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartan.compare.budget import METHODS, equal_steps, spent
from tests.in_process import STAGES

COSTS = st.fixed_dictionaries(
    {
        method: st.fixed_dictionaries({stage: st.floats(1e9, 5e10) for stage in stages})
        for method, stages in METHODS.items()
    }
)


def test_the_stages_are_those_of_the_configs():
    found = {method: list(stages) for method, stages in METHODS.items()}
    assert found == {method: STAGES[method] for method in METHODS}


def test_a_method_with_two_stages_spends_half_on_each():
    costs = {"finetune": {"finetune": 2.0}, "dapt": {"dapt": 5.0, "finetune": 2.0}}
    costs["meta_tartan"] = {"joint": 10.0}
    steps = equal_steps(costs, 100)
    assert steps == {
        "finetune": {"finetune": 500},
        "dapt": {"dapt": 100, "finetune": 250},
        "meta_tartan": {"joint": 100},
    }
    assert set(spent(costs, steps).values()) == {1000.0}


@given(COSTS, st.integers(50, 1000))
def test_every_method_spends_the_budget_but_for_half_a_step_a_stage(costs, steps):
    found = equal_steps(costs, steps)
    budget = steps * max(cost for stages in costs.values() for cost in stages.values())
    for method, total in spent(costs, found).items():
        slack = sum(costs[method].values()) / 2
        assert total == pytest.approx(budget, abs=1.001 * slack)
