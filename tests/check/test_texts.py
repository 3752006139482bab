"""Lengths in tokens; repeated, leaked and nearly equal texts, in numbers known beforehand."""

from __future__ import annotations

import datasets
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.check import texts
from tartan.check.texts import near_duplicates, repeats, same_texts
from tartan.data.overlap import folded, words_of
from tartan.encoders.tiny import TinyEncoder
from tests.check.made_up import DEV, TEST, TRAIN


def frame_of(**splits):
    rows = [
        {"split": split, "line": line, "label": label, "text": text, "key": folded(text)}
        for split, examples in splits.items()
        for line, (text, label) in enumerate(examples, start=1)
    ]
    return pd.DataFrame(rows)


MADE_UP = frame_of(train=TRAIN, dev=DEV, test=TEST)


def test_repeats_are_counted_in_a_split_and_in_earlier_ones():
    found = repeats(MADE_UP)
    assert found["texts"].to_dict() == {"train": 8, "dev": 3, "test": 4}
    assert found["repeats"].to_dict() == {"train": 2, "dev": 0, "test": 1}
    assert found["in_train"].dropna().to_dict() == {"dev": 1, "test": 1}
    assert found["in_dev"].dropna().to_dict() == {"test": 2}
    assert found["other_label"].to_dict() == {"train": 3, "dev": 0, "test": 1}


def test_a_label_that_train_has_for_the_text_too_is_no_other_label():
    examples = frame_of(train=[("a", "A"), ("a", "B")], test=[("a", "A"), ("A ", "B"), ("a", "C")])
    assert repeats(examples).loc["test", "other_label"] == 1


def test_repeated_texts_have_their_places_those_with_several_labels_first():
    found = same_texts(frame_of(train=[("x", "A"), ("y", "A"), ("X", "A")], dev=[("y", "B")]))
    assert found[["text", "labels"]].values.tolist() == [["y", 2], ["x", 1]]
    assert found["places"][0] == "train line 2 (A), dev line 1 (B)"
    assert same_texts(frame_of(train=[(" ", "A"), ("y", "A")]))["text"].tolist() == [" "]
    different = frame_of(train=[("x", "A"), ("y", "A")]).astype({"line": "Int64"})
    assert len(same_texts(different)) == 0


def jaccard(one, other):
    def grams(text):
        words = words_of(text)
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    both, either = grams(one) & grams(other), grams(one) | grams(other)
    return len(both) / len(either) if either else 0.0


words = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=5), st.lists(words, min_size=1, max_size=5))
def test_near_duplicates_are_those_of_a_slow_reference(dev, train):
    examples = frame_of(train=[(t, "A") for t in train], dev=[(t, "A") for t in dev])
    found = near_duplicates(examples).set_index("line")
    for line, text in enumerate(dev, start=1):
        best = max(jaccard(text, other) for other in train)
        equal = folded(text) in map(folded, train)
        assert (line in found.index) == (best >= 0.5 and not equal)
        if line in found.index:
            assert found.loc[line, "similarity"] == pytest.approx(best)
            assert jaccard(text, found.loc[line, "train_text"]) == pytest.approx(best)
            assert train[found.loc[line, "train_line"] - 1] == found.loc[line, "train_text"]


def test_lengths_are_those_before_texts_are_cut():
    # pieces of the tiny encoder are pairs of letters, between two special tokens
    samples = {"train": ["ab"] * 98 + ["ab" * 8, "ab" * 18], "dev": ["ab \u4e00"]}
    limits = {"train": 12, "dev": 12}
    found = texts.lengths(samples, limits, TinyEncoder().load().tokenizer)
    train = found.loc["train"]
    assert (train["median"], train["longest"], train["cut_%"]) == (3, 20, 1)
    assert train["enough"] == 24
    assert found["unknown_%"].tolist() == [0, 25]


@pytest.mark.parametrize(
    ("sizes", "enough"), [([8] * 99 + [100], 104), ([8] * 199 + [100], 8), ([9, 3], 16)]
)
def test_less_than_a_hundredth_exceeds_the_length_that_is_enough(sizes, enough):
    assert texts.enough_length(np.array(sizes)) == enough
    assert np.mean(np.array(sizes) > enough) < texts.LOST


def test_a_sample_is_the_same_at_every_call_and_bounded(monkeypatch):
    source = datasets.Dataset.from_dict({"text": ["", *(f"text {i}" for i in range(3000)), None]})
    assert len(texts.sample_of(source, "dapt")) == 3000
    monkeypatch.setattr(texts, "MOST_TEXTS", 100)
    first, again, other = (texts.sample_of(source, name) for name in ("dapt", "dapt", "train"))
    assert first == again != other
    assert 98 <= len(first) <= 100
