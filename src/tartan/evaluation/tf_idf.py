"""Classifies texts with TF-IDF and logistic regression, as a baseline without an encoder."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor


@dataclass(frozen=True)
class TfIdfClassifier:
    """A fitted classifier of texts: weights of words, or of pairs too, and the regression."""

    vectoriser: TfidfVectorizer
    model: LogisticRegression

    @property
    def settings(self) -> str:
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
    class_weights: Iterable[Literal["balanced"] | None] = ("balanced",),
) -> TfIdfClassifier:
    """Fit a classifier of words, and of pairs too, for each setting; return the best on dev."""
    vectorisers = [TfidfVectorizer(sublinear_tf=True, ngram_range=(1, n)) for n in (1, 2)]
    read = [(vectoriser, vectoriser.fit_transform(texts)) for vectoriser in vectorisers]
    fitted = (
        TfIdfClassifier(
            vectoriser,
            LogisticRegression(C=strength, class_weight=kind, max_iter=2000).fit(weights, labels),
        )
        for (vectoriser, weights), strength, kind in product(read, strengths, class_weights)
    )
    return max(fitted, key=score)
