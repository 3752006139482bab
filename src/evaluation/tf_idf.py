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

LONGEST = (1, 2)
"""Words alone, or pairs of words too."""


@dataclass(frozen=True)
class TfIdfClassifier:
    """A fitted classifier of texts.

    Attributes:
        vectoriser: of words, or of words and pairs of words.
        model: on its weights.
    """

    vectoriser: TfidfVectorizer
    model: LogisticRegression

    @property
    def settings(self) -> str:
        """What was chosen on dev."""
        words, model = self.vectoriser.ngram_range[1], self.model
        return f"words={words}, C={model.C:g}, class_weight={model.class_weight}"

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
    """Fit a classifier of words, and of pairs too, for each setting; return what scores best.

    Args:
        texts: of training.
        labels: theirs; every label occurs.
        score: on dev; of equal ones the first is taken.
        strengths: values of `C`, the inverse of the regularisation.
        class_weights: `balanced` for labels weighted alike, None for as they come.
    """
    vectorisers = [TfidfVectorizer(sublinear_tf=True, ngram_range=(1, n)) for n in LONGEST]
    read = [(vectoriser, vectoriser.fit_transform(texts)) for vectoriser in vectorisers]
    fitted = (
        TfIdfClassifier(
            vectoriser,
            LogisticRegression(C=strength, class_weight=kind, max_iter=2000).fit(weights, labels),
        )
        for (vectoriser, weights), strength, kind in product(read, strengths, class_weights)
    )
    return max(fitted, key=score)
