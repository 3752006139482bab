"""How a text is divided into examples."""

from __future__ import annotations

import pytest

from tartan.build_corpus.parts import words_of_examples
from tartan.build_corpus.settings import ExampleOptions


@pytest.mark.parametrize("by", ["paragraph", "words", "line", "document"])
@pytest.mark.parametrize("text", ["", " \n\n "])
def test_a_blank_text_has_no_words(by, text):
    """A filter of articles may have left nothing of one."""
    assert not any(words_of_examples(text, ExampleOptions(by, 4, 1)))
