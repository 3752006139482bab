"""The fitted temperature is the best one, and the error is that of torchmetrics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchmetrics.functional.classification import multiclass_calibration_error

from tartan.evaluation.calibration import calibrate

LABELS = np.random.default_rng(0).integers(4, size=300)


def logits_of(scale: float, offset: float) -> np.ndarray:
    """Logits of which most are right for a positive `offset`, too certain by about `scale`."""
    noise = np.random.default_rng(1).normal(size=(300, 4))
    return (scale * (noise + offset * np.eye(4)[LABELS])).astype(np.float32)


@pytest.mark.parametrize(
    ("scale", "offset"), [(0.03, 1.5), (1.0, 1.5), (8.0, 1.5), (3.0, 0.2), (5.0, -1.0)]
)
def test_no_temperature_of_a_grid_is_better(scale, offset):
    logits = logits_of(scale, offset)
    found = calibrate(logits, LABELS)
    grid = np.geomspace(1e-3, 1e3, 4001)
    scores = torch.tensor(logits).double()
    losses = [
        torch.nn.functional.cross_entropy(scores / t, torch.tensor(LABELS)).item() for t in grid
    ]
    assert found.temperature == pytest.approx(grid[np.argmin(losses)], rel=4e-3)
    assert found.after.log_loss <= min(min(losses), found.before.log_loss) + 1e-8
    for temperature, side in ((1.0, found.before), (found.temperature, found.after)):
        probabilities = torch.softmax(scores / temperature, dim=1)
        expected = multiclass_calibration_error(probabilities, torch.tensor(LABELS), 4, n_bins=15)
        assert side.ece == pytest.approx(expected.item(), abs=1e-6)
        assert sum(side.examples) == 300
    if scale > 1:
        assert found.after.ece < found.before.ece


def test_where_every_text_is_right_the_scores_stay():
    found = calibrate(20 * np.eye(4)[LABELS], LABELS)
    assert (found.temperature, found.after) == (1.0, found.before)
