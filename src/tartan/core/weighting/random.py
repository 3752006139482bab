"""Random weights, the baseline that a learned weighting has to beat."""

from __future__ import annotations

from tartan.core.mixture import Mixed, weighted_mean
from tartan.core.step import Step
from tartan.core.weighting.base import Weighting


class Random(Weighting):
    """`alpha = softmax(z)`, `z ~ N(0, 1)` drawn anew in each step (RLW, Lin et al., 2022)."""

    def mix(self, step: Step) -> Mixed:
        """Return the mean of the gradients, weighted by this step's draw."""
        alpha = step.normal(len(self.task_names)).softmax(dim=0)
        return weighted_mean(step.gradients(), alpha)
