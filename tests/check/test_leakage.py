"""Repeated and leaked texts are counted, as they are and regardless of case and white space."""

from __future__ import annotations

import datasets
import numpy as np
import pytest

from tartan.check.leakage import (
    InCorpus,
    Repeated,
    Shared,
    contents_of,
    hashes,
    in_corpus,
    repeated,
    shared,
)
from tartan.data.overlap import HeldOutGrams
from tests.check import made_up


def contents(examples):
    labels = np.array([ord(label) for _, label in examples])
    return contents_of([text for text, _ in examples], labels)


@pytest.fixture
def splits():
    parts = {"train": made_up.TRAIN, "dev": made_up.DEV, "test": made_up.TEST}
    return {name: contents(examples) for name, examples in parts.items()}


def test_a_split_repeats_what_comes_after_the_first_of_each(splits):
    assert repeated("train", splits["train"]) == Repeated(
        split="train", examples=8, exact=1, folded=2, contradictory=1, contradicted=3
    )
    assert repeated("dev", splits["dev"]) == Repeated("dev", 3, 0, 0, 0, 0)
    assert repeated("test", splits["test"]) == Repeated("test", 4, 1, 1, 0, 0)


def test_what_two_splits_share_is_counted_in_the_first(splits):
    assert shared("dev", splits["dev"], "train", splits["train"]) == Shared(
        split="dev", other="train", examples=3, exact=1, folded=1, other_label=0
    )
    assert shared("test", splits["test"], "train", splits["train"]) == Shared(
        split="test", other="train", examples=4, exact=0, folded=1, other_label=1
    )
    assert shared("test", splits["test"], "dev", splits["dev"]) == Shared(
        split="test", other="dev", examples=4, exact=1, folded=2, other_label=1
    )


def test_a_label_that_train_has_for_the_text_too_is_no_other_label():
    train = contents([("a", "A"), ("a", "B")])
    test = contents([("a", "A"), ("A ", "B"), ("a", "C")])
    assert shared("test", test, "train", train).other_label == 1


def test_held_out_texts_are_found_in_a_corpus(splits):
    texts = datasets.Dataset.from_dict({"text": made_up.CORPUS})
    held_out = HeldOutGrams.of([text for text, _ in made_up.TEST])
    assert in_corpus("dapt", texts, splits, held_out) == InCorpus(
        auxiliary="dapt", texts=4, whole=True, sharing=2, repeated=1,
        exact={"dev": 0, "test": 2}, folded={"dev": 0, "test": 2},
    )  # fmt: skip


def test_of_a_large_corpus_a_sample_is_looked_at(splits):
    texts = datasets.Dataset.from_dict({"text": [f"text {number}" for number in range(100)]})
    found = in_corpus("dapt", texts, splits, HeldOutGrams.of([]), most=30)
    assert (found.texts, found.whole, found.repeated) == (30, False, 0)


def test_a_corpus_of_blank_lines_holds_nothing(splits):
    texts = datasets.Dataset.from_dict({"text": ["", " ", None]})
    found = in_corpus("dapt", texts, splits, HeldOutGrams.of([]))
    assert (found.texts, found.repeated, found.exact) == (0, 0, {"dev": 0, "test": 0})


def test_pixels_are_compared_as_they_are():
    assert hashes([b"\x00a", b"\x00A"])[0] != hashes([b"\x00A"])[0]
    found = contents_of([b"a", b"A", b"a"], np.array([0, 0, 1]))
    assert repeated("train", found) == Repeated("train", 3, 1, 1, 1, 2)
