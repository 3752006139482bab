"""Exact repeats over all parts, against a set of all texts; how articles become examples."""

from __future__ import annotations

import hashlib
import tracemalloc

import numpy as np
import pytest
from datatrove.utils.text import simplify_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartan.corpus import blocks
from tartan.corpus.blocks import normalised_words, words_of_examples
from tartan.corpus.settings import ExampleOptions


def digests(texts):
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(joined, "<u8").reshape(-1, 2)


def marked(keys):
    return [marks.tolist() for marks in blocks.repeats_among(keys)]


def naive(parts):
    seen, dropped = set(), []
    for texts in parts:
        dropped.append([])
        for text in texts:
            dropped[-1].append(text in seen)
            seen.add(text)
    return dropped


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.lists(st.sampled_from("abcdefghijklmnop"), max_size=40), min_size=1, max_size=5
    ),
    at_once=st.integers(1, 50),
)
def test_repeats_are_those_that_a_set_of_all_texts_finds(parts, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "DIGESTS", at_once)
        assert marked([digests(texts) for texts in parts]) == naive(parts)


def test_texts_whose_digests_share_a_half_are_not_repeats():
    """The first half decides the range; both have to be equal."""
    keys = np.array([[7, 1], [7, 2], [9, 1], [7, 1], [2**64 - 1, 0]], dtype=np.uint64)
    assert marked([keys]) == [[False, False, False, True, False]]


def test_memory_does_not_grow_with_the_number_of_examples(monkeypatch):
    monkeypatch.setattr(blocks, "DIGESTS", 5_000)
    peaks = []
    for parts in (4, 16):
        keys = [digests([f"{part} {n}" for n in range(10_000)]) for part in range(parts)]
        tracemalloc.start()
        blocks.repeats_among(keys)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize("by", ["paragraph", "words", "line", "document"])
@pytest.mark.parametrize("text", ["", " \n\n "])
def test_a_blank_text_has_no_words(by, text):
    """A filter of articles may have left nothing of one."""
    assert not any(words_of_examples(text, ExampleOptions(by, 4, 1)))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("The Café, in 1984!", "the cafe in 1985"),
        ("a\tb\n\nc d", "A-B c:D"),
        ("3.14 is pi", "2.72 is pi"),
    ],
)
def test_case_punctuation_diacritics_and_numbers_do_not_count(text, same):
    assert normalised_words(text) == normalised_words(same) == simplify_text(text).split()
