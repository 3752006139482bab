"""Near-duplicates are those of a slow reference, each with its most similar text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.check.near import near_duplicates
from tartan.data.decontaminate import folded
from tartan.data.near_duplicates import MIN_SIMILARITY
from tartan.data.overlap import words_of
from tartan.data.text_task import LabelledTexts


def jaccard(one, other):
    def grams(text):
        words = words_of(text)
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    both, either = grams(one) & grams(other), grams(one) | grams(other)
    return len(both) / len(either) if either else 0.0


def labelled(texts, numbers=None):
    return LabelledTexts(texts, [0] * len(texts), [True] * len(texts), None, numbers)


def test_a_text_with_one_word_changed_is_found():
    text = "the quick brown fox jumps over the lazy dog in the old town"
    others = ["something else that is as long as this", text.replace("dog", "cat"), "the quick"]
    own = ["nothing of this kind", text, others[0].upper()]
    (near,) = near_duplicates("test", labelled(own), labelled(others))
    assert (near.index, near.other_index, near.text) == (1, 1, text)
    assert near.similarity == pytest.approx(jaccard(text, others[1])) == 8 / 14
    assert (near.number, near.other_number) == (None, None)
    (near,) = near_duplicates("test", labelled(own, [2, 4, 9]), labelled(others, [1, 3, 5]))
    assert (near.number, near.other_number) == (4, 3)


words = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=5), st.lists(words, min_size=1, max_size=5))
def test_they_are_those_of_a_slow_reference(own, others):
    near_ones = near_duplicates("dev", labelled(own), labelled(others))
    found = {near.index: near for near in near_ones}
    for i, text in enumerate(own):
        best = max(jaccard(text, other) for other in others)
        equal = folded(text) in map(folded, others)
        assert (i in found) == (best >= MIN_SIMILARITY and not equal)
        if i in found:
            assert found[i].similarity == pytest.approx(best)
            assert jaccard(text, others[found[i].other_index]) == pytest.approx(best)
