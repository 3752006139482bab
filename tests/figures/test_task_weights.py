"""The picture of the task weights is drawn, whatever the run was like."""

from __future__ import annotations

import warnings

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from tartan.figures.weights import draw_task_weights, mean_weights


@pytest.fixture
def draw(tmp_path):
    """Draw weights given as `{task: values}`, one value a step; the picture's pixels."""

    def call(weights, evaluations=((1, 0.2), (3, 0.6), (5, 0.5)), stage="joint") -> np.ndarray:
        lines = ["stage,step,task,weight,cosine,loss,gradient_norm"]
        for task, values in weights.items():
            for step, value in enumerate(values, start=1):
                lines.append(f"{stage},{step},{task},{value},,1,1")
        lines.append("other,1,unrelated,1,,1,1")
        table, target = tmp_path / "steps.csv", tmp_path / "task_weights.png"
        table.write_text("\n".join(lines) + "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            draw_task_weights(table, stage, list(evaluations), "macro_f1", "A title", target)
        return matplotlib.image.imread(target)

    return call


STEADY = {"end_task": [0.4, 0.5, 0.6, 0.7, 0.8], "tapt": [0.6, 0.5, 0.4, 0.3, 0.2]}


def test_a_picture_of_a_readable_size_is_drawn(draw):
    height, width, _ = draw(STEADY).shape
    assert width >= 1000
    assert height >= 600


@pytest.mark.parametrize(
    "weights",
    [
        {"end_task": [0.5], "tapt": [0.5]},  # one step
        {"end_task": [0.5] * 5, "tapt": [0.5] * 5},  # equal throughout
        {f"task_{index}": [0.1] * 5 for index in range(10)},  # more tasks than colours
        {"end_task": [0.5], r"$\bad$": [0.5]},  # a name that looks like a formula
    ],
)
def test_unusual_runs_are_drawn_too(draw, weights):
    assert draw(weights).shape[2] in (3, 4)


def test_a_mean_is_not_of_the_few_that_trained_longest():
    long, short = (
        pd.DataFrame({"task": "end_task", "step": range(1, n + 1), "weight": value})
        for n, value in ((4, 0.2), (2, 0.8))
    )
    found = mean_weights([long, short])
    assert found["mean"].tolist() == pytest.approx([0.5, 0.5])
    assert mean_weights([long])["step"].tolist() == [1, 2, 3, 4]
