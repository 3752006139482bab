"""TF-IDF with logistic regression: what a classifier reaches without any encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

ClassWeight = Literal["balanced"] | None


@dataclass(frozen=True)
class TfIdfClassifier:
    """A fitted classifier of texts.

    Attributes:
        vectoriser: of words and pairs of words.
        model: on its weights.
    """

    vectoriser: TfidfVectorizer
    model: LogisticRegression

    def log_probabilities(self, texts: Sequence[str]) -> Tensor:
        """Return the log-probability of each label: `(texts, labels)`."""
        return torch.from_numpy(self.model.predict_log_proba(self.vectoriser.transform(texts)))


def best_tf_idf(
    texts: Sequence[str],
    labels: Sequence[int],
    score: Callable[[TfIdfClassifier], float],
    strengths: Iterable[float],
    class_weights: Iterable[ClassWeight] = ("balanced",),
) -> TfIdfClassifier:
    """Fit a classifier for each choice of its settings, and return the one that scores best.

    Args:
        texts: of training.
        labels: theirs; every label occurs.
        score: on dev; of equal ones the first is taken.
        strengths: values of `C`, the inverse of the regularisation.
        class_weights: `balanced` for labels weighted alike, None for as they come.
    """
    vectoriser = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
    weights = vectoriser.fit_transform(texts)
    fitted = (
        TfIdfClassifier(
            vectoriser,
            LogisticRegression(C=strength, class_weight=kind, max_iter=2000).fit(weights, labels),
        )
        for strength, kind in product(strengths, class_weights)
    )
    return max(fitted, key=score)
