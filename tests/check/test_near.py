"""Near-duplicates are those of a slow reference, each with its most similar text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.check.near import near_duplicates
from src.data.near_duplicates import MIN_SIMILARITY
from src.data.overlap import words_of


def jaccard(one, other):
    def grams(text):
        words = words_of(text)
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    both, either = grams(one) & grams(other), grams(one) | grams(other)
    return len(both) / len(either) if either else 0.0


def test_a_text_with_one_word_changed_is_found():
    text = "the quick brown fox jumps over the lazy dog in the old town"
    others = ["something else that is as long as this", text.replace("dog", "cat"), "the quick"]
    (near,) = near_duplicates("test", ["nothing of this kind", text], "train", others)
    assert (near.index, near.other_index, near.text) == (1, 1, text)
    assert near.similarity == pytest.approx(jaccard(text, others[1])) == 8 / 14


words = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=5), st.lists(words, min_size=1, max_size=5))
def test_they_are_those_of_a_slow_reference(own, others):
    found = {near.index: near for near in near_duplicates("dev", own, "train", others)}
    for i, text in enumerate(own):
        best = max(jaccard(text, other) for other in others)
        assert (i in found) == (best >= MIN_SIMILARITY)
        if i in found:
            assert found[i].similarity == pytest.approx(best)
            assert jaccard(text, others[found[i].other_index]) == pytest.approx(best)
