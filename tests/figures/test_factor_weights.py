"""The picture of composed objectives' weights: shares, and that it is drawn."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from tartan.core.weighting.aang import Aang
from tartan.figures.weights import draw_factor_weights, factor_weights_figure, shares_of
from tests.objectives.spaces import space

NAMES = ["end_task", *space("aang_td").members("aang")]


def logits_of(weighting, *steps):
    names, values = weighting.logits()
    return pd.DataFrame(
        [
            {"step": step, "factor": name, "logit": value * step}
            for step in steps
            for name, value in zip(names, values.tolist(), strict=True)
        ]
    )


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
    overall = dict(zip(NAMES, weighting.overall().tolist(), strict=True))
    for name in NAMES[1:]:
        assert last["objective", name] * (1 - end_task) == pytest.approx(overall[name], rel=1e-5)


def test_a_panel_a_stage_and_the_ranking(weighting):
    runs = [shares_of(logits_of(weighting, 0, 3, 6)), shares_of(logits_of(weighting, 0, 3, 5))]
    figure = factor_weights_figure(runs, "A title")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "data", "input transform", "representation", "output", "end task and auxiliaries",
        "objectives, the 12 first",
    ]  # fmt: skip
    assert [len(axes.lines) - 1 for axes in figure.axes[:5]] == [1, 4, 4, 2, 2]


def test_a_choice_with_the_signs_of_a_formula_is_text(weighting, tmp_path):
    """A formula that Matplotlib cannot read would end the report."""
    logits = logits_of(weighting, 0, 3)
    task = next(name.split("/")[1].split("-")[0] for name in logits["factor"] if "-" in name)
    logits["factor"] = logits["factor"].str.replace(rf"\b{task}\b", r"$\\bad$", regex=True)
    assert logits["factor"].str.contains(r"$\bad$", regex=False).any()
    factor_weights_figure([shares_of(logits)], "A title").savefig(tmp_path / "weights.png")


def test_a_stage_of_a_log_is_drawn(weighting, tmp_path):
    table = logits_of(weighting, 0, 3).assign(stage="joint")
    other = table.assign(stage="other", logit=math.inf)
    pd.concat([table, table.tail(5), other]).to_csv(tmp_path / "factors.csv", index=False)
    target = tmp_path / "factor_weights.png"
    draw_factor_weights(tmp_path / "factors.csv", "joint", "A title", target)
    assert target.read_bytes().startswith(b"\x89PNG")
