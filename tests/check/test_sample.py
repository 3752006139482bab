"""What is tokenised is bounded, and the same at every call."""

from __future__ import annotations

import datasets
import pytest

from tartan.check.sample import sample_of

TEXTS = [f"text number {number}" if number % 10 else " " for number in range(5000)]


@pytest.fixture(scope="module")
def texts():
    return datasets.Dataset.from_dict({"text": TEXTS})


def test_few_texts_are_all_looked_at_but_for_blank_ones(texts):
    sample = sample_of(texts, "x")
    assert sample.whole
    assert sorted(sample.texts) == sorted(text for text in TEXTS if text.strip())


def test_of_many_a_part_of_every_place_is_taken(texts):
    sample = sample_of(texts, "x", most_texts=1000)
    assert not sample.whole
    assert 850 < len(sample.texts) < 950  # a tenth is blank
    assert len(set(sample.texts)) == len(sample.texts)
    places = [int(text.split()[-1]) for text in sample.texts]
    assert 2200 < sum(places) / len(places) < 2800
    assert max(places) > 4900
    assert sample == sample_of(texts, "x", most_texts=1000)
    assert sample != sample_of(texts, "y", most_texts=1000)


def test_long_texts_are_bounded_by_their_characters():
    long = datasets.Dataset.from_dict({"text": ["word " * 100] * 50})
    sample = sample_of(long, "x", most_characters=1200)
    assert len(sample.texts) == 3
    assert not sample.whole
