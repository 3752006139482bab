"""Draws a seeded sample of texts to tokenise, limited in texts and in characters."""

from __future__ import annotations

from dataclasses import dataclass

import datasets

from tartan.core.seeding import generator_for

MOST_TEXTS = 20_000
MOST_CHARACTERS = 4_000_000
"""Maximum number of characters in a sample: about a million tokens, which take
seconds to tokenise.
"""
_AT_ONCE = 2_000


@dataclass(frozen=True)
class Sample:
    """A sample of a source's texts.

    Attributes:
        texts: the sampled texts, none of them blank.
        whole: whether only blank texts are left out.
    """

    texts: list[str]
    whole: bool


def sample_of(
    texts: datasets.Dataset,
    name: str,
    most_texts: int = MOST_TEXTS,
    most_characters: int = MOST_CHARACTERS,
) -> Sample:
    """Return all texts, or a random choice of them; the same at every call.

    Args:
        texts: rows with the column `text`.
        name: name of the source; different sources are sampled independently.
        most_texts: maximum number of texts.
        most_characters: maximum number of characters in all.
    """
    order = generator_for(0, "check", "sample", name).permutation(len(texts))[:most_texts]
    chosen: list[str] = []
    characters = looked_at = 0
    for start in range(0, len(order), _AT_ONCE):
        # sorted: what lies together in the file is read together
        for text in texts.select(sorted(order[start : start + _AT_ONCE].tolist()))["text"]:
            looked_at += 1
            if text and not text.isspace():
                chosen.append(text)
                characters += len(text)
            if characters >= most_characters:
                return Sample(chosen, looked_at == len(texts))
    return Sample(chosen, looked_at == len(texts))
