"""Near-duplicates are those of a slow reference, however many there are."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.near_duplicates import (
    MIN_SIMILARITY,
    WORDS,
    GramSets,
    near_duplicate_groups,
    nearest_duplicates,
)
from tartan.data.overlap import words_of


def jaccard(one, other):
    """The share of two texts' runs of words that both have."""
    grams = []
    for text in (one, other):
        words = words_of(text)
        grams.append({tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)})
    either = grams[0] | grams[1]
    return len(grams[0] & grams[1]) / len(either) if either else 0.0


words = st.lists(st.sampled_from("abcd"), max_size=12).map(" ".join)
orders = st.builds(
    "your order {} of {} has been shipped to {}".format,
    st.integers(0, 5),
    st.sampled_from(["monday", "tuesday"]),
    st.sampled_from(["berlin", "paris", "new york"]),
)
greetings = st.builds("dear {} the quick brown fox jumps over {}".format, words, words)
texts = st.lists(st.one_of(words, orders, greetings), min_size=1, max_size=12)


@settings(max_examples=200)
@given(texts, texts)
def test_the_most_similar_is_the_one_of_a_slow_reference(own, others):
    slow = []
    for index, text in enumerate(own):
        similar = [jaccard(text, other) for other in others]
        best = max(similar)
        if best >= MIN_SIMILARITY:
            slow.append((index, similar.index(best), best))
    found = nearest_duplicates(own, others)
    assert slow == list(zip(found.own, found.other, found.similarity, strict=True))


@settings(max_examples=200)
@given(texts)
def test_groups_are_the_chains_of_a_slow_reference(own):
    groups = near_duplicate_groups(own)
    slow = list(range(len(own)))
    for _ in own:
        for i, left in enumerate(own):
            for j, right in enumerate(own):
                if jaccard(left, right) >= MIN_SIMILARITY:
                    slow[i] = slow[j] = min(slow[i], slow[j])
    assert [[a == b for b in groups] for a in groups] == [[a == b for b in slow] for a in slow]


def forms(count, first=0):
    return [
        f"your order number {number} has been shipped and will arrive within three working days"
        for number in range(first, first + count)
    ]


def test_texts_of_one_form_are_found_however_many_there_are():
    found = nearest_duplicates(forms(150), ["of another kind", *forms(3000, first=1000)])
    assert found.own.tolist() == list(range(150))
    assert set(found.other) == {1}
    assert len(set(near_duplicate_groups(forms(3000)))) == 1


def test_equal_texts_are_found_however_many_there_are():
    text = "this text is here a great many times"
    found = nearest_duplicates([text], ["something else entirely then", *[text.upper()] * 3000])
    assert (found.other.tolist(), found.similarity.tolist()) == ([1], [1.0])
    assert len(set(near_duplicate_groups([text] * 3000))) == 1


def test_texts_without_spaces_are_compared_by_characters():
    others = ["明天下午三点在会议室开会讨论预算", "今天天气很好我们一起去动物园吧"]
    found = nearest_duplicates(["今天天气很好，我们一起去公园吧。"], others)
    assert found.other.tolist() == [1]


def test_none_are_found_among_no_texts():
    assert len(nearest_duplicates(["one two three"], []).own) == 0
    assert len(nearest_duplicates([], ["one two three"]).own) == 0
    assert len(near_duplicate_groups([])) == 0
    assert len(set(near_duplicate_groups(["one", "one"]))) == 2


FORM = "your order number {} has been shipped and will arrive within three working days"


def test_equal_texts_are_a_set_and_texts_of_one_form_a_profile():
    sets = GramSets.of([*map(FORM.format, range(900)), FORM.format(7).upper(), "of two"])
    assert len(sets.of_sets) == 900
    assert sets.of_texts[-2:].tolist() == [sets.of_texts[7], -1]
    assert sets.sizes.tolist() == [12]
    assert sets.weights.tolist() == [9]  # but for the three with the number


texts = st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(" ".join), min_size=1, max_size=9)


@given(texts, st.sampled_from([0.2, 0.5, 0.8]))
def test_what_has_enough_in_common_has_a_column_of_both_prefixes_in_common(texts, share):
    sets = GramSets.of(texts)
    least = share * sets.sizes
    prefixes = sets.prefixes(least)
    for own, other in combinations_with_replacement(range(len(sets.sizes)), 2):
        common = sets.columns[own].multiply(sets.columns[other]) @ sets.weights
        if common[0] >= max(least[own], least[other]):
            assert prefixes[own].multiply(prefixes[other]).nnz


@given(texts)
def test_similarities_are_those_of_the_sets(texts):
    sets = GramSets.of(texts)
    runs = [text.split() for text in texts]
    grams = [{tuple(own[i : i + 3]) for i in range(len(own) - 2)} for own in runs]
    for i, j in combinations_with_replacement(range(len(texts)), 2):
        if not grams[i] or not grams[j] or grams[i] == grams[j]:
            continue
        left, right = sets.of_sets[sets.of_texts[[i, j]]]
        found = sets.similarities(np.array([left]), np.array([right]))
        assert found.tolist() == [len(grams[i] & grams[j]) / len(grams[i] | grams[j])]
