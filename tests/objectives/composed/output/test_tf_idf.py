"""The output that predicts TF-IDF weights, against those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from tartan.errors import UserError
from tartan.objectives.composed.output.tf_idf import TfIdf
from tests.objectives.composed.output.batches import TINY, VOCABULARY, batch, text


def drawn(count, seed=0):
    rng = np.random.default_rng(seed)
    return [text(*rng.integers(50, 70, rng.integers(4, 15)).tolist()) for _ in range(count)]


def test_the_targets_are_logarithms_of_scikit_learns_weights():
    rows = drawn(30)
    vectoriser = TfidfVectorizer(analyzer=lambda row: row["input_ids"], norm=None)
    expected = vectoriser.fit_transform(rows).toarray()
    column = vectoriser.vocabulary_
    output = TfIdf().fit(rows, VOCABULARY)
    for number, row in enumerate(rows):
        tokens = np.asarray(row["input_ids"])
        positions, weights = output.targets(row, tokens, np.ones(len(tokens), dtype=bool))
        assert positions.tolist() == list(range(len(tokens)))
        own = [np.log1p(expected[number, column[token]]) for token in tokens.tolist()]
        np.testing.assert_allclose(weights, own, rtol=1e-6)


def test_only_chosen_tokens_are_predicted():
    rows = drawn(8)
    output = TfIdf().fit(rows, VOCABULARY)
    part = batch(output, rows)
    assert part.units == len(part.inputs["positions"]) < 8 * 15
    assert part.inputs["targets"].dtype == torch.float32


def test_of_many_texts_evenly_spaced_ones_are_counted():
    rows = [text(50 + number) for number in range(10)]
    idf = TfIdf(texts=5).fit(rows, VOCABULARY).idf
    counted = 1 + np.log((1 + 5) / (1 + 1))
    others = 1 + np.log(1 + 5)
    np.testing.assert_allclose(idf[50:60], [counted, others] * 5)


def test_the_loss_is_the_squared_error():
    output = TfIdf()
    head = output.new_head(TINY, classes=7).eval()
    features, targets = torch.randn(5, 16), torch.rand(5)
    expected = (head(features)[:, 0] - targets) ** 2
    torch.testing.assert_close(output.losses(TINY.body, head, features, targets), expected)


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ({"texts": 0}, "texts must be .*at least 1, got 0"),
        ({"dropout": -0.1}, r"dropout must be a number in \[0, 1\), got -0.1"),
    ],
)
def test_settings_out_of_range_are_refused(option, line):
    with pytest.raises(UserError, match=line):
        TfIdf(**option)
