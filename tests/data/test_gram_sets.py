"""Sets of word grams: what is alike is together, and prefixes leave nothing out."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from src.data.gram_sets import GramSets

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
