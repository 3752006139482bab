"""Equal weights: MT-TARTAN's default (paper, section 3.1)."""

from __future__ import annotations

import torch

from tartan.core.mixture import Mixed, weighted_mean
from tartan.core.step import Step
from tartan.core.weighting.base import FixedWeighting


class Uniform(FixedWeighting):
    """`alpha_i = 1 / (number of tasks in the step)`."""

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names, [1.0 / len(task_names)] * len(task_names))

    def mix_sampled(self, step: Step) -> Mixed:
        """Return the mean of the step's gradients."""
        return weighted_mean(step.gradients(), torch.ones_like(self.alpha[: len(step.tasks)]))
