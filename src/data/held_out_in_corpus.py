"""Warns of dev and test texts that are in auxiliary text, on which a model would be trained."""

from __future__ import annotations

import datasets

from src.data.corpus import Corpus
from src.data.remarks import warn_of_held_out
from src.data.text_task import TextTask

MOST_TEXTS = 100_000
"""Maximum number of auxiliary texts that are compared before a run, which takes a second or two.

`python -m src.check` compares more.
"""
_AT_ONCE = 10_000


def folded(text: str) -> str:
    """Return the text regardless of case and white space."""
    return " ".join(text.casefold().split())


def warn_of_held_out_in(name: str, corpus: Corpus, task: TextTask) -> None:
    """Log how many dev and test texts are in a corpus; nothing for one of many texts.

    Args:
        name: the auxiliary task that reads the corpus.
        corpus: the texts that are trained on.
        task: the end task.
    """
    if len(corpus.texts) > MOST_TEXTS:
        return
    held_out = [text for split in (task.dev, task.test) for text in split.whole]
    found = count_in(corpus.texts, held_out)
    if found:
        warn_of_held_out(
            name,
            corpus.source,
            (found, len(held_out)),
            "auxiliary.decontaminate=true leaves them out"
            if task.source.prefix
            else "remove them from it",
        )


def count_in(texts: datasets.Dataset, held_out: list[str]) -> int:
    """Return how many held-out texts are in a corpus, regardless of case and white space.

    Args:
        texts: rows with the column `text`.
        held_out: the texts to look for; blank ones are not.
    """
    wanted = [one for text in held_out if (one := folded(text))]
    known, found = set(wanted), set[str]()
    for batch in texts.iter(_AT_ONCE):
        found.update(known.intersection(folded(text or "") for text in batch["text"]))
    return sum(one in found for one in wanted)
