"""Labels that are likely wrong, and the choice of texts to label next."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tartan.evaluation.label_quality import doubtful_labels, out_of_fold, texts_to_label

LABELS = ("a", "b", "c")


@pytest.fixture
def clusters():
    """Features of 60 examples of each of three labels, some 8 standard deviations apart."""
    labels = np.repeat(np.arange(3), 60)
    noise = np.random.default_rng(0).normal(size=(len(labels), 5))
    return noise + 8 * np.eye(5)[labels], labels


def test_planted_labels_are_found_first(clusters):
    features, labels = clusters
    planted = np.random.default_rng(1).choice(len(labels), 9, replace=False)
    wrong = labels.copy()
    wrong[planted] = (wrong[planted] + 1) % 3
    texts = [f"{LABELS[label]} is here {number}" for number, label in enumerate(labels)]
    probabilities = out_of_fold(features, texts, wrong, seed=0)
    assert np.allclose(probabilities.sum(axis=1), 1)
    examples = pd.DataFrame({"number": np.arange(len(labels)), "label": np.array(LABELS)[wrong]})
    found = doubtful_labels(examples, probabilities, LABELS)
    assert set(found["number"][:9]) == set(planted)
    assert found["predicted"][:9].tolist() == [LABELS[labels[n]] for n in found["number"][:9]]
    assert found["probability_of_label"].is_monotonic_increasing


def test_equal_texts_are_not_judged_by_each_other():
    # two contradictory labels of each text: whoever saw its twin would predict the other label
    features = np.repeat(np.random.default_rng(0).normal(size=(40, 200)), 2, axis=0)
    labels = np.tile([0, 1], 40)
    together = out_of_fold(features, [f"text {n // 2}" for n in range(80)], labels, seed=0)
    assert np.allclose(together[::2], together[1::2])


def test_a_label_that_no_other_fold_has_is_not_judged(clusters):
    features, labels = clusters
    labels = np.append(labels, 3)
    features = np.append(features, features[:1], axis=0)
    probabilities = out_of_fold(features, [f"{n}" for n in range(len(labels))], labels, seed=0)
    examples = pd.DataFrame({"label": np.array([*LABELS, "d"])[labels]})
    assert "d" not in set(doubtful_labels(examples, probabilities, [*LABELS, "d"])["label"])


def test_suggestions_are_uncertain_and_differ_and_are_the_same_again():
    # 10 groups of 30 nearly equal texts that the classifier does not know, and 300 that it does
    generator = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 30)
    features = np.eye(10)[group] + 0.01 * generator.normal(size=(300, 10))
    features = np.concatenate([features, generator.normal(size=(300, 10))])
    first = np.concatenate([generator.uniform(0.4, 0.6, 300), np.full(300, 0.99)])
    probabilities = np.stack([first, 1 - first], axis=1)
    chosen = texts_to_label(probabilities, features.__getitem__, 10, seed=0)
    margins = np.abs(2 * first - 1)[chosen]
    assert (np.diff(margins) >= 0).all()
    assert margins.max() < 0.2
    assert len({group[index] for index in chosen}) >= 8  # the ten least certain are of fewer
    assert chosen.tolist() == texts_to_label(probabilities, features.__getitem__, 10, 0).tolist()
    assert sorted(texts_to_label(probabilities, features.__getitem__, 600, 0)) == list(range(600))
