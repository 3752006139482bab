"""Exact repeats over all parts, against a set of all texts; how articles become examples."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.corpus import blocks
from tartan.corpus.blocks import words_of_examples
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


@settings(max_examples=60)
@given(
    parts=st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=40), min_size=1),
    at_once=st.integers(1, 50),
)
def test_repeats_are_those_that_a_set_of_all_texts_finds(parts, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "DIGESTS", at_once)  # so that parts are compared in several portions
        assert marked([digests(texts) for texts in parts]) == naive(parts)


def test_texts_whose_digests_share_a_half_are_not_repeats():
    """The first half decides the range; both have to be equal."""
    keys = np.array([[7, 1], [7, 2], [9, 1], [7, 1], [2**64 - 1, 0]], dtype=np.uint64)
    assert marked([keys]) == [[False, False, False, True, False]]


@pytest.mark.parametrize("by", ["paragraph", "words", "line", "document"])
def test_a_blank_text_has_no_words(by):
    """A filter of articles may have left nothing of one."""
    assert not any(words_of_examples(" \n\n ", ExampleOptions(by, 4, 1)))
