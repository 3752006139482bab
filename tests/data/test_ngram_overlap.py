"""N-gram overlap against the slow way: every n-gram of a text looked up among all others."""

from __future__ import annotations

import pytest
from datatrove.utils.text import simplify_text
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.ngram_overlap import NgramIndex, words_of


def naive(texts, n, text):
    def grams(words):
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)} or {tuple(words)}

    known = {gram for known in texts for gram in grams(simplify_text(known).split())} - {()}
    return not known.isdisjoint(grams(simplify_text(text).split()))


TEXTS = st.lists(st.sampled_from("ab"), max_size=14).map(" ".join)


@settings(max_examples=300)
@given(texts=st.lists(TEXTS, max_size=3), text=TEXTS, n=st.integers(1, 7))
def test_it_finds_what_the_slow_way_finds(texts, text, n):
    assert NgramIndex(texts, n).overlaps(text) == naive(texts, n, text)


@pytest.mark.parametrize("place", range(20))
@pytest.mark.parametrize("n", [4, 5, 12])
def test_a_shared_run_is_found_wherever_it_is(place, n):
    known = [f"k{number}x" for number in range(n)]
    other = [f"o{chr(97 + number)}" for number in range(20)]
    text = [*other[:place], *known, *other[place:]]
    index = NgramIndex([" ".join(["before", *known, "after"])], n)
    assert index.overlaps(" ".join(text))
    assert not index.overlaps(" ".join(text).replace(known[n // 2], "another"))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("The Café, in 1984!", "the cafe in 1985"),
        ("a\tb\n\nc d", "A-B c:D"),
        ("3.14 is pi", "2.72 is pi"),
    ],
)
def test_case_punctuation_diacritics_and_numbers_do_not_count(text, same):
    assert words_of(text) == words_of(same) == simplify_text(text).split()
    assert NgramIndex([text], 3).overlaps(same)


def test_short_texts_are_found_whole_only():
    index = NgramIndex(["Short text.", ""], 5)
    assert index.overlaps("short text")
    assert not index.overlaps("a short text")
    assert not index.overlaps("")
