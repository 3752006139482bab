"""Decides by predictions for held-out texts which methods go on, and which one wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torchmetrics import Metric

RESAMPLES = 1000
BEHIND = 2.0
"""A method that is further behind the best is dropped [standard errors of the difference]."""
AT_MOST = {1: 3}
"""Largest number of methods, the baseline among them, that go on after so many folds; later 2."""


class Difference(NamedTuple):
    """A difference of scores, its standard error, and a 95 % interval, over the same examples."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Predictions:
    """What the methods predict for the held-out examples of the folds so far."""

    labels: NDArray[Any]  # codes (see `TaskKind`), (examples,) or (examples, labels)
    probabilities: Mapping[str, NDArray[np.floating]]  # or other scores by method, as many
    metric: Metric  # the task's; higher is better

    @cached_property
    def scores(self) -> dict[str, float]:
        """Return the score of each method on all examples."""
        every = np.arange(len(self.labels))
        return {method: self._score(method, every) for method in self.probabilities}

    def difference(self, method: str, other: str) -> Difference:
        """Return how far `method` is ahead of `other`, by a paired bootstrap over examples."""
        value = self.scores[method] - self.scores[other]
        drawn = self._drawn[method] - self._drawn[other]
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Difference(value, float(drawn.std(ddof=1)), float(low), float(high))

    def interval(self, method: str) -> tuple[float, float]:
        """Return the 95 % bootstrap interval of a method's score."""
        low, high = np.quantile(self._drawn[method], [0.025, 0.975])
        return float(low), float(high)

    @cached_property
    def _drawn(self) -> dict[str, NDArray[np.float64]]:
        """Return each method's scores on the same random draws of examples, `(resamples,)`."""
        generator, count = np.random.default_rng(0), len(self.labels)
        draws = [generator.integers(count, size=count) for _ in range(RESAMPLES)]
        return {m: np.array([self._score(m, d) for d in draws]) for m in self.probabilities}

    def _score(self, method: str, examples: NDArray[np.int64]) -> float:
        self.metric.reset()
        chosen = torch.from_numpy(self.probabilities[method][examples])
        self.metric.update(chosen, torch.from_numpy(self.labels[examples]))
        return float(self.metric.compute())


def going_on(predictions: Predictions, folds: int, baseline: str) -> list[str]:
    """Return the methods that are trained on the next fold, in their order.

    The baseline always goes on, because the others are compared with it. A method is dropped if it
    is behind the best by more than `BEHIND` standard errors after so many `folds`, or not among
    the best `AT_MOST`.
    """
    scores = predictions.scores
    best = max(scores, key=scores.__getitem__)
    close = [method for method in scores if _is_close(predictions, method, best, BEHIND)]
    close.sort(key=lambda method: -scores[method])
    others = [method for method in close if method != baseline][: AT_MOST.get(folds, 2) - 1]
    return [method for method in scores if method == baseline or method in others]


def winner(predictions: Predictions) -> str:
    """Return the first, simplest method that is within one standard error of the best."""
    scores = predictions.scores
    best = max(scores, key=scores.__getitem__)
    return next(method for method in scores if _is_close(predictions, method, best, 1.0))


def _is_close(predictions: Predictions, method: str, best: str, errors: float) -> bool:
    """Return whether a method is behind the best by at most so many standard errors."""
    behind = predictions.difference(best, method)
    return method == best or behind.value <= errors * behind.error


def joined(parts: Sequence[Predictions], methods: Sequence[str]) -> Predictions:
    """Return the predictions of these methods for the examples of several folds together."""
    return Predictions(
        np.concatenate([part.labels for part in parts]),
        {one: np.concatenate([part.probabilities[one] for part in parts]) for one in methods},
        parts[0].metric,
    )
