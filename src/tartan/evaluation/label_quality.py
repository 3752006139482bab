"""Finds labels that are likely wrong, and the texts to label next, by predicted probabilities."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

DOUBTFUL = "doubtful_labels.csv"
"""File of `doubtful_labels` in a comparison's folder."""
_FOLDS = 5
_CANDIDATES = 10
"""Number of uncertain texts among which one is chosen."""


def doubtful_labels(
    examples: pd.DataFrame, probabilities: NDArray[np.floating], labels: Sequence[str]
) -> pd.DataFrame:
    """Return the examples whose label is contradicted, the least probable label first.

    Args:
        examples: a row for each example, with its `label`.
        probabilities: of all labels, by a classifier that was not trained on the example,
            `(examples, labels)`. An example whose label has probability 0, because none like it was
            trained on, is not judged.
        labels: their names.

    Returns:
        The rows, with the columns `predicted` and `probability_of_label`.
    """
    own = pd.Index(labels).get_indexer(examples["label"])
    frame = examples.reset_index(drop=True)
    frame["predicted"] = np.asarray(labels)[probabilities.argmax(axis=1)]
    frame["probability_of_label"] = probabilities[np.arange(len(own)), own]
    judged = (frame["predicted"] != frame["label"]) & (frame["probability_of_label"] > 0)
    return frame[judged].sort_values("probability_of_label", kind="stable", ignore_index=True)


def out_of_fold(
    features: NDArray[np.floating], texts: Sequence[str], labels: NDArray[np.int64], seed: int
) -> NDArray[np.float64]:
    """Return what logistic regressions predict for the examples that they were not fitted to.

    It is the mean of two, of an encoder's features and of TF-IDF of words and pairs of words.

    Args:
        features: `(examples, features)`.
        texts: of the examples; equal ones are in the same fold.
        labels: indices, `(examples,)`.
        seed: of the folds.

    Returns:
        Probabilities, `(examples, labels)`; 0 for labels that the regressions were not fitted to.
    """
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"\S+")
    weights = words.fit_transform(texts)
    probabilities = np.zeros((len(labels), labels.max() + 1))
    folds = StratifiedGroupKFold(_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        cut = list(folds.split(features, labels, pd.factorize(np.asarray(texts))[0]))
    for fitted, held_out in cut:
        scaled = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
        for model, read in ((scaled, features), (LogisticRegression(C=10, max_iter=200), weights)):
            model.fit(read[fitted], labels[fitted])
            found = model.predict_proba(read[held_out])
            probabilities[np.ix_(held_out, model.classes_)] += found / 2
    return probabilities


def texts_to_label(
    probabilities: NDArray[np.floating],
    features_of: Callable[[NDArray[np.int64]], NDArray[np.floating]],
    count: int,
    seed: int,
) -> NDArray[np.int64]:
    """Return the indices of `count` texts, uncertain and unlike each other, most uncertain first.

    The `_CANDIDATES * count` texts with the smallest margins between their two most probable labels
    are clustered by k-means, and each cluster's centre takes a text near to it (Zhdanov, 2019,
    arXiv 1901.05954).

    Args:
        probabilities: a classifier's, `(texts, labels)`.
        features_of: returns the features of texts by their indices, `(texts, features)`.
        count: number of texts; where there are no more, all are returned.
        seed: of the clusters.
    """
    margin = np.diff(np.sort(probabilities, axis=1)[:, -2:], axis=1)[:, 0]
    candidates = np.argsort(margin, kind="stable")[: _CANDIDATES * count]
    if len(candidates) <= count:
        return candidates
    points = normalize(features_of(candidates))
    distances = KMeans(count, n_init=1, random_state=seed).fit(points).transform(points)
    nearest, _ = linear_sum_assignment(distances)  # of each centre another text
    chosen: NDArray[np.int64] = candidates[np.sort(nearest)]
    return chosen
