"""Fits a temperature (Guo et al., 2017, arXiv 1706.04599), after which scores are probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, NonNegativeInt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from tartan.encoders.saved_classifier import CALIBRATION
from tartan.files import Plain, write_text_durably

BINS = 15
"""Number of equally wide bins of the highest probability, as in the paper."""
_RANGE = 1e-3, 1e3
"""Lowest and highest temperature."""


class Bin(Plain):
    """The texts whose highest probability is in a bin: mean probability, and share of right ones.

    Both are 0 where there are no texts.
    """

    examples: NonNegativeInt
    confidence: Annotated[FiniteFloat, Field(ge=0, le=1)]
    accuracy: Annotated[FiniteFloat, Field(ge=0, le=1)]


Bins = Annotated[list[Bin], Field(min_length=BINS, max_length=BINS)]


class Calibration(Plain):
    """A temperature, and what it changed on the texts that it was fitted to.

    `ece` is the expected calibration error, `log_loss` the mean cross-entropy; `before` is of the
    softmax of the logits, `after` of the logits divided by the temperature.
    """

    temperature: Annotated[FiniteFloat, Field(gt=0)]
    examples: NonNegativeInt
    ece_before: FiniteFloat
    ece_after: FiniteFloat
    log_loss_before: FiniteFloat
    log_loss_after: FiniteFloat
    bins_before: Bins
    bins_after: Bins

    @property
    def summary(self) -> dict[str, float]:
        """The numbers without the bins, for `result.json`."""
        return self.model_dump(exclude={"bins_before", "bins_after"})

    @property
    def sentence(self) -> str:
        """A line for the model card."""
        return (
            f"`tartan predict` divides the logits by {self.temperature:.4g}, fitted to "
            f"{self.examples:,} texts; their expected calibration error went from "
            f"{self.ece_before:.3f} to {self.ece_after:.3f}. Transformers does not divide them."
        )


def calibrate(logits: NDArray[np.floating], labels: NDArray[np.int64]) -> Calibration:
    """Fit a temperature to logits `(texts, classes)` and the texts' label indices `(texts,)`."""
    temperature = fit_temperature(logits, labels)
    before, after = (reliability(logits, labels, t) for t in (1.0, temperature))
    return Calibration(
        temperature=temperature,
        examples=len(labels),
        ece_before=calibration_error(before),
        ece_after=calibration_error(after),
        log_loss_before=log_loss(logits, labels, 1.0),
        log_loss_after=log_loss(logits, labels, temperature),
        bins_before=before,
        bins_after=after,
    )


def fit_temperature(logits: NDArray[np.floating], labels: NDArray[np.int64]) -> float:
    """Return the temperature with the least mean cross-entropy.

    It is 1 where every text is right: the least loss would then be at 0, certain of everything.
    """
    if (logits.argmax(axis=1) == labels).all():
        return 1.0
    # convex in 1 / temperature, so that there is one minimum
    found = minimize_scalar(
        lambda log: log_loss(logits, labels, float(np.exp(log))),
        bounds=np.log(_RANGE),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return min(1.0, float(np.exp(found.x)), key=lambda t: log_loss(logits, labels, t))


def log_loss(logits: NDArray[np.floating], labels: NDArray[np.int64], temperature: float) -> float:
    """Return the mean cross-entropy of logits divided by a temperature, in float64."""
    scores = log_softmax(logits.astype(np.float64) / temperature, axis=1)
    return float(-scores[np.arange(len(labels)), labels].mean())


def reliability(
    logits: NDArray[np.floating], labels: NDArray[np.int64], temperature: float
) -> list[Bin]:
    """Return the `BINS` of the highest probabilities, whose texts a reliability diagram shows."""
    highest = np.exp(log_softmax(logits.astype(np.float64) / temperature, axis=1).max(axis=1))
    right = logits.argmax(axis=1) == labels
    place = np.minimum((highest * BINS).astype(int), BINS - 1)
    counts, confidence, accuracy = (
        np.bincount(place, weights, BINS) for weights in (None, highest, right)
    )
    some = np.maximum(counts, 1)
    return [
        Bin(examples=n, confidence=min(c, 1.0), accuracy=a)
        for n, c, a in zip(
            counts.tolist(), (confidence / some).tolist(), (accuracy / some).tolist(), strict=True
        )
    ]


def calibration_error(bins: list[Bin]) -> float:
    """Return the expected calibration error: the mean distance of probability and accuracy."""
    distances = [one.examples * abs(one.accuracy - one.confidence) for one in bins]
    return sum(distances) / max(1, sum(one.examples for one in bins))


def write_calibration(calibration: Calibration, run: Path) -> None:
    """Write `calibration.json` into a run folder, and into its classifier's, which may be moved."""
    for folder in (run / "classifier", run):
        write_text_durably(folder / CALIBRATION, calibration.model_dump_json(indent=1) + "\n")
