"""The pictures of tasks' weights: means, and that they are drawn."""

from __future__ import annotations

import warnings

import matplotlib.image
import pandas as pd
import pytest

from tartan.figures import draw_task_weights, mean_over_runs


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
