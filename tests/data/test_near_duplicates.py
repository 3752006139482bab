"""Near-duplicates are those of all pairs, found without comparing all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartan.data import near_duplicates
from tartan.data.near_duplicates import MIN_SIMILARITY, WORDS, nearest_duplicates, same_texts


def similarity(left, right):
    """Jaccard similarity of two texts' sets of word sequences."""
    runs = [text.split() for text in (left, right)]
    one, other = ({tuple(w[i : i + WORDS]) for i in range(len(w) - WORDS + 1)} for w in runs)
    return len(one & other) / len(one | other) if one | other else 0.0


texts = st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(" ".join), max_size=9)


@given(texts, texts, st.sampled_from([1, 100, 5_000_000]))
def test_the_nearest_of_all_pairs_is_found(left, right, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_duplicates, "_PAIRS", at_once)
        nearest = nearest_duplicates(left, right)
    expected = []
    for i, text in enumerate(left):
        alike = [similarity(text, other) for other in right]
        if alike and max(alike) >= MIN_SIMILARITY:
            expected.append((i, int(np.argmax(alike)), max(alike)))
    assert list(nearest.itertuples(index=False, name=None)) == expected


@given(texts.filter(len))
def test_groups_are_the_components_of_equal_and_alike_texts(texts):
    slow = list(range(len(texts)))
    for _ in texts:
        for i, left in enumerate(texts):
            for j, right in enumerate(texts):
                if left == right or similarity(left, right) >= MIN_SIMILARITY:
                    slow[i] = slow[j] = min(slow[i], slow[j])
    groups = same_texts(texts)
    assert [[a == b for b in groups] for a in groups] == [[a == b for b in slow] for a in slow]


def test_case_space_and_punctuation_do_not_tell_texts_apart():
    groups = same_texts(["A cat, sat.", "a  cat sat", "another cat", "A CAT SAT"])
    assert (groups == groups[0]).tolist() == [True, True, False, True]
    found = nearest_duplicates(["今天天气很好，我们一起去公园。"], ["今天天气很好我们一起去公园吧"])
    assert found["other"].tolist() == [0]


def test_many_texts_of_one_form_are_grouped_in_seconds():
    form = "your order number {} has been shipped and will arrive within three working days"
    texts = [form.format(i) for i in range(2000)]
    assert len(set(same_texts([*texts, *texts]).tolist())) == 1
