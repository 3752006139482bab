"""Labels are counted in every split."""

from __future__ import annotations

import numpy as np
import pytest

from tartan.check.counts import count_labels


@pytest.fixture
def counts():
    splits = {
        "train": np.array([1, 1, 1, 1, 2, 2, 0]),
        "dev": np.array([1, 2]),
        "test": np.array([0, 0, 2]),
    }
    return count_labels(("a", "b", "c"), splits)


def test_each_label_is_counted_in_each_split(counts):
    assert counts.splits == {"train": [1, 4, 2], "dev": [0, 1, 1], "test": [2, 0, 1]}
    assert [counts.of(split) for split in counts.splits] == [7, 2, 3]


def test_the_rarest_and_the_most_frequent_are_named(counts):
    assert counts.rarest("train") == ("a", 1)
    assert counts.most("train") == ("b", 4)
    assert counts.imbalance == 4
    assert counts.rarest("test") == ("b", 0)


def test_labels_without_an_example_are_listed(counts):
    assert [counts.missing(split) for split in counts.splits] == [(), ("a",), ("b",)]


def test_the_most_frequent_comes_first(counts):
    frame = counts.frame()
    assert list(frame.index) == ["b", "c", "a"]
    assert list(frame.loc["c"]) == [2, 1, 1]
