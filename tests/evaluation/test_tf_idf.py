"""TF-IDF with logistic regression."""

from __future__ import annotations

import torch

from tartan.evaluation.tf_idf import best_tf_idf

TEXTS = ["red apple", "green apple", "old river", "long river", "big stone", "small stone"]
LABELS = [0, 0, 1, 1, 2, 2]


def test_a_word_that_tells_the_label_is_learnt():
    found = best_tf_idf(TEXTS, LABELS, lambda _: 0.0, [10.0])
    predicted = found.log_probabilities(["an apple", "that river", "one stone"])
    assert predicted.argmax(dim=1).tolist() == [0, 1, 2]
    torch.testing.assert_close(predicted.exp().sum(dim=1), torch.ones(3, dtype=torch.float64))


def test_the_best_on_dev_is_returned_and_the_first_of_equal_ones():
    def score(wanted):
        return lambda found: found.model.C in wanted

    assert best_tf_idf(TEXTS, LABELS, score([10.0]), [1.0, 10.0, 100.0]).model.C == 10.0
    assert best_tf_idf(TEXTS, LABELS, score([10.0, 100.0]), [1.0, 10.0, 100.0]).model.C == 10.0
    pairs = best_tf_idf(TEXTS, LABELS, lambda found: len(found.vectoriser.vocabulary_), [1.0])
    assert pairs.settings == "words=2, C=1, class_weight=balanced"
    kinds = best_tf_idf(TEXTS, LABELS, lambda found: found.model.class_weight is None, [1.0],
                        ("balanced", None))  # fmt: skip
    assert kinds.model.class_weight is None
