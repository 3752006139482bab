"""The figure of the metric against the cost."""

from __future__ import annotations

import numpy as np

from studies.cost_figure import draw_costs
from tests.studies.made_up_rows import rows


def test_budgets_are_points_of_a_line_and_what_costs_nothing_is_a_level():
    own = rows({"finetune": [0.75, 0.85]}, budget="3x", tflop=4.5)
    own += rows({"finetune": [0.5, 0.6], "tapt": [0.7]})
    own += rows({"tfidf": [0.4]}, budget="no budget", tflop=None)
    picture = draw_costs(own)
    (axes,) = picture.axes
    bars = {bar.get_label(): bar.lines for bar in axes.containers}
    line, _, (spread,) = bars["finetune"]
    np.testing.assert_allclose(line.get_xydata(), [[1.5, 55], [4.5, 80]])
    np.testing.assert_allclose(spread.get_segments()[1], [[4.5, 80 - 50**0.5], [4.5, 80 + 50**0.5]])
    np.testing.assert_allclose(bars["tapt"][0].get_xydata(), [[1.5, 70]])
    (level,) = [one for one in axes.lines if one.get_label() == "tfidf"]
    assert set(level.get_ydata()) == {40}
