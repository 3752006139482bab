"""Lengths of texts before they are cut, what cutting loses, and which length would do."""

from __future__ import annotations

import datasets
import numpy as np
import pytest

from tartan.check.inputs import Source
from tartan.check.lengths import enough_length, lengths_of
from tartan.check.sample import sample_of
from tartan.data.tokenise import tokenise
from tartan.encoders.tiny import TinyEncoder


@pytest.mark.parametrize(
    ("lengths", "enough"),
    [
        ([10] * 200, 16),
        ([16] * 200, 16),
        ([17] * 200, 24),
        ([10] * 199 + [900], 16),  # a half of one percent
        ([10] * 198 + [900] * 2, 904),  # one percent is not less than one percent
        ([8] * 50 + [30], 32),  # of few texts, one is more than one percent
    ],
)
def test_less_than_one_percent_are_longer_than_what_is_enough(lengths, enough):
    found = enough_length(np.array(lengths))
    assert found == enough
    assert np.mean(np.array(lengths) > found) < 0.01


def test_lengths_are_those_of_whole_texts_and_cuts_those_of_all(cache_dir):
    encoder = TinyEncoder().load()
    texts = ["a b c", "a " * 20, "", "a " * 40, "a b"]  # a letter is a token, and two are special
    source = datasets.Dataset.from_dict({"text": texts})
    rows = tokenise(source, "lengths", encoder.tokenizer, 12, cache_dir, keep_blank=False)
    sample = sample_of(source, "x")
    found = lengths_of(Source("x", source, rows, 12), sample, encoder)
    assert (found.texts, found.longest) == (4, 42)
    assert found.whole
    assert found.median == 13.5  # of 4, 5, 22 and 42
    assert found.cut == 0.5
    assert found.lost == pytest.approx(40 / 65)  # 10 of 20 and 30 of 40 are beyond 12 - 2
    assert found.enough == 48
