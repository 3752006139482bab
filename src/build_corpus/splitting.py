"""From an article's paragraphs to examples: lists of words, white space aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from src.build_corpus.settings import Settings


def examples_of(paragraphs: Iterable[str], settings: Settings) -> Iterator[list[str]]:
    """The words of each example, in order; too short and blank ones too."""
    if settings.by == "paragraph":
        for paragraph in paragraphs:
            yield paragraph.split()
    elif settings.by == "line":
        for paragraph in paragraphs:
            for line in paragraph.split("\n"):
                yield line.split()
    else:
        words = [word for paragraph in paragraphs for word in paragraph.split()]
        size = settings.words if settings.by == "words" else max(1, len(words))
        for start in range(0, len(words), size):
            yield words[start : start + size]
