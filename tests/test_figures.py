"""The pictures of tasks' and factors' weights: shares, means, and that they are drawn."""

from __future__ import annotations

import math
import warnings

import matplotlib.image
import pandas as pd
import pytest

from tartan.core.weighting.aang import Aang
from tartan.figures import draw_factor_weights, draw_task_weights, mean_over_runs, shares_of
from tests.objectives.spaces import space

NAMES = ["end_task", *space("aang_td").members("aang")]


def logits_of(weighting, *steps):
    names, values = weighting.logits()
    rows = [
        {"step": step, "factor": name, "logit": value * step}
        for step in steps
        for name, value in zip(names, values.tolist(), strict=True)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def weighting():
    own = Aang(NAMES)
    own.factors.copy_(0.1 * own.factors.new_tensor(range(len(own.factors))).sin())
    own.two_way.copy_(own.two_way.new_tensor([0.5, -0.5]))
    return own


def test_shares_are_those_of_the_weighting(weighting):
    shares = shares_of(logits_of(weighting, 0, 1))
    assert shares.groupby(["step", "stage"])["share"].sum().to_numpy() == pytest.approx(1)
    first = shares[shares["step"] == 0].groupby("stage")["share"]
    assert (first.max() - first.min()).max() == pytest.approx(0)
    last = shares[shares["step"] == 1].set_index(["stage", "choice"])["share"]
    end_task = 1 / (1 + math.exp(-1))
    assert last["two_way", "end_task"] == pytest.approx(end_task)


def test_the_factors_of_a_stage_of_a_log_are_drawn_and_names_are_no_formulas(weighting, tmp_path):
    """A formula that Matplotlib cannot read would end the run."""
    table = logits_of(weighting, 0, 3).assign(stage="joint")
    task = next(name.split("/")[1].split("-")[0] for name in table["factor"] if "-" in name)
    table["factor"] = table["factor"].str.replace(rf"\b{task}\b", r"$\\bad$", regex=True)
    other = table.assign(stage="other", logit=math.inf)
    pd.concat([table, table.tail(5), other]).to_csv(tmp_path / "factors.csv", index=False)
    target = tmp_path / "factor_weights.png"
    draw_factor_weights(tmp_path / "factors.csv", "joint", "A title", target)
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "weights",
    [
        {"end_task": [0.4, 0.5, 0.6, 0.7, 0.8], "tapt": [0.6, 0.5, 0.4, 0.3, 0.2]},
        {"end_task": [0.5], "tapt": [0.5]},  # one step
        {f"task_{index}": [0.1] * 5 for index in range(10)},  # more tasks than colours
        {"end_task": [0.5], r"$\bad$": [0.5]},  # a name that looks like a formula
    ],
)
def test_the_task_weights_of_a_run_are_drawn(weights, tmp_path):
    rows = [
        {"stage": "joint", "step": step, "task": task, "weight": value}
        for task, values in weights.items()
        for step, value in enumerate(values, start=1)
    ]
    other = {"stage": "other", "step": 1, "task": "unrelated", "weight": 1}
    pd.DataFrame([*rows, other]).to_csv(tmp_path / "steps.csv", index=False)
    target = tmp_path / "task_weights.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluations = [(1, 0.2), (3, 0.6), (5, 0.5)]
        draw_task_weights(
            tmp_path / "steps.csv", "joint", evaluations, "macro_f1", "A title", target
        )
    height, width, _ = matplotlib.image.imread(target).shape
    assert (width >= 1000, height >= 600) == (True, True)


def test_a_mean_is_not_of_the_few_that_trained_longest():
    long, short = (
        pd.DataFrame({"task": "end_task", "step": range(1, n + 1), "weight": value})
        for n, value in ((4, 0.2), (2, 0.8))
    )
    found = mean_over_runs([long, short], ["task"], "weight")
    assert found["mean"].tolist() == pytest.approx([0.5, 0.5])
    assert mean_over_runs([long], ["task"], "weight")["step"].tolist() == [1, 2, 3, 4]
