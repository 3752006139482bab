"""Decides a race by predictions for texts that were not trained on: who goes on, who wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torchmetrics import Metric

RESAMPLES = 1000
BEHIND = 2.0
"""Standard errors of the paired difference by which a way that is dropped is behind the best."""
AT_MOST = {1: 3}
"""Largest number of ways that go on after so many folds; after more folds it is 2."""


class Difference(NamedTuple):
    """A difference of scores, its standard error, and a 95 % interval, over the same examples."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Predictions:
    """What the ways predict for the held-out examples of the folds so far.

    Attributes:
        labels: index of each example's label, int `(examples,)`.
        probabilities: those of each way, `(examples, classes)`.
        metric: the task's metric; higher is better.
    """

    labels: NDArray[np.int64]
    probabilities: Mapping[str, NDArray[np.float32]]
    metric: Metric

    @cached_property
    def scores(self) -> dict[str, float]:
        """Return the score of each way on all examples."""
        every = np.arange(len(self.labels))
        return {way: self._score(way, every) for way in self.probabilities}

    def difference(self, way: str, other: str) -> Difference:
        """Return how far `way` is ahead of `other`, by a paired bootstrap over examples."""
        value = self.scores[way] - self.scores[other]
        drawn = self._drawn[way] - self._drawn[other]
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Difference(value, float(drawn.std(ddof=1)), float(low), float(high))

    def interval(self, way: str) -> tuple[float, float]:
        """Return the 95 % bootstrap interval of a way's score."""
        low, high = np.quantile(self._drawn[way], [0.025, 0.975])
        return float(low), float(high)

    @cached_property
    def _drawn(self) -> dict[str, NDArray[np.float64]]:
        """Return each way's scores on the same random draws of examples, `(resamples,)`."""
        generator, count = np.random.default_rng(0), len(self.labels)
        draws = [generator.integers(count, size=count) for _ in range(RESAMPLES)]
        return {
            way: np.array([self._score(way, draw) for draw in draws]) for way in self.probabilities
        }

    def _score(self, way: str, examples: NDArray[np.int64]) -> float:
        self.metric.reset()
        chosen = torch.from_numpy(self.probabilities[way][examples])
        self.metric.update(chosen, torch.from_numpy(self.labels[examples]))
        return float(self.metric.compute())


def going_on(predictions: Predictions, folds: int, baseline: str) -> list[str]:
    """Return the ways that are trained on the next fold, in their order.

    The baseline always goes on, because the others are compared with it. A way is dropped if it is
    behind the best by more than `BEHIND` standard errors, or not among the best `AT_MOST`.

    Args:
        predictions: those of the ways that are still in the race.
        folds: number of folds that they are of.
        baseline: the simplest way.
    """
    scores = predictions.scores
    best = max(scores, key=scores.__getitem__)
    close = [
        way
        for way in scores
        if way == best
        or (behind := predictions.difference(best, way)).value <= BEHIND * behind.error
    ]
    close.sort(key=lambda way: (way != baseline, -scores[way]))
    others = [way for way in close if way != baseline][: AT_MOST.get(folds, 2) - 1]
    return [way for way in scores if way == baseline or way in others]


def winner(predictions: Predictions) -> str:
    """Return the first, simplest way that is within one standard error of the best."""
    scores = predictions.scores
    best = max(scores, key=scores.__getitem__)
    for way in scores:
        behind = predictions.difference(best, way)
        if way == best or behind.value <= behind.error:
            return way
    raise AssertionError("the best way is within its own error")


def runs_of(ways: int, folds: int) -> int:
    """Return the largest number of runs that a race takes, the final one included."""
    later = [min(ways, AT_MOST.get(fold, 2)) for fold in range(1, folds)]
    return ways + sum(later) + 1


def joined(parts: Sequence[Predictions], ways: Sequence[str]) -> Predictions:
    """Return the predictions of these ways for the examples of several folds together."""
    return Predictions(
        np.concatenate([part.labels for part in parts]),
        {way: np.concatenate([part.probabilities[way] for part in parts]) for way in ways},
        parts[0].metric,
    )
