"""Fits a temperature (Guo et al., 2017, arXiv 1706.04599), after which scores are probabilities."""

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, NonNegativeInt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from tartan.files import CALIBRATION, Plain, write_text_durably

BINS = 15
"""Number of equally wide bins of the highest probability, as in the paper."""
_EACH = Field(min_length=BINS, max_length=BINS)
_RANGE = 1e-3, 1e3
"""Lowest and highest temperature."""


class Reliability(Plain):
    """How certain a classifier is and how often right, by bin of the highest probability.

    `log_loss` is the mean cross-entropy, `ece` the expected calibration error. Of a bin, `examples`
    is the number of texts, `confidence` their mean probability, `accuracy` the share of right ones.
    """

    log_loss: FiniteFloat
    ece: FiniteFloat
    examples: Annotated[list[NonNegativeInt], _EACH]
    confidence: Annotated[list[FiniteFloat], _EACH]
    accuracy: Annotated[list[FiniteFloat], _EACH]


class Calibration(Plain):
    """A temperature, and what dividing by it changed on the texts that it was fitted to."""

    temperature: Annotated[FiniteFloat, Field(gt=0)]
    before: Reliability
    after: Reliability

    @property
    def summary(self) -> dict[str, float]:
        """The numbers without the bins, for `result.json`."""
        return {
            "temperature": self.temperature,
            "examples": sum(self.before.examples),
            "ece_before": self.before.ece,
            "ece_after": self.after.ece,
        }

    @property
    def sentence(self) -> str:
        """A line for the model card."""
        return (
            f"`tartan predict` divides the logits by {self.temperature:.4g}, fitted to "
            f"{sum(self.before.examples):,} texts; their expected calibration error went from "
            f"{self.before.ece:.3f} to {self.after.ece:.3f}. Transformers does not divide them."
        )


def calibrate(logits: NDArray[np.floating], labels: NDArray[np.int64]) -> Calibration:
    """Fit a temperature to logits `(texts, classes)` and the texts' label indices `(texts,)`."""
    temperature = fit_temperature(logits, labels)
    before, after = (reliability(logits, labels, t) for t in (1.0, temperature))
    return Calibration(temperature=temperature, before=before, after=after)


def fit_temperature(logits: NDArray[np.floating], labels: NDArray[np.int64]) -> float:
    """Return the temperature with the least mean cross-entropy.

    It is 1 where every text is right: the least loss would then be at 0, certain of everything.
    """
    if (logits.argmax(axis=1) == labels).all():
        return 1.0

    def loss(temperature: float) -> float:
        return reliability(logits, labels, temperature).log_loss

    # convex in 1 / temperature, so that there is one minimum
    found = minimize_scalar(
        lambda x: loss(float(np.exp(x))),
        bounds=np.log(_RANGE),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return min(1.0, float(np.exp(found.x)), key=loss)


def reliability(
    logits: NDArray[np.floating], labels: NDArray[np.int64], temperature: float
) -> Reliability:
    """Return how certain and how right the softmax of logits divided by a temperature is."""
    scores = log_softmax(logits.astype(np.float64) / temperature, axis=1)
    highest, right = np.exp(scores.max(axis=1)), logits.argmax(axis=1) == labels
    place = np.minimum((highest * BINS).astype(int), BINS - 1)
    counts, *sums = (np.bincount(place, weights, BINS) for weights in (None, highest, right))
    confidence, accuracy = (one / np.maximum(counts, 1) for one in sums)
    return Reliability(
        log_loss=-scores[np.arange(len(labels)), labels].mean(),
        ece=float(counts @ abs(confidence - accuracy)) / len(labels),
        examples=counts.tolist(),
        confidence=confidence.tolist(),
        accuracy=accuracy.tolist(),
    )


def write_calibration(calibration: Calibration, run: Path) -> None:
    """Write `calibration.json` into a run folder, and into its classifier's, which may be moved."""
    for folder in (run / "classifier", run):
        write_text_durably(folder / CALIBRATION, calibration.model_dump_json(indent=1) + "\n")
