"""Equal weights: MT-TARTAN's default (paper, section 3.1)."""

from __future__ import annotations

from src.core.weighting.base import FixedWeighting


class Uniform(FixedWeighting):
    """`alpha_i = 1 / (number of tasks)`."""

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names, [1.0 / len(task_names)] * len(task_names))
