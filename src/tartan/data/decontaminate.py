"""Finds dev and test texts in auxiliary text: warns of them, or leaves out what overlaps."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np

from tartan.data.cache import cached_indices
from tartan.data.corpus import Corpus
from tartan.data.overlap import WORDS, WORDS_VERSION, HeldOutGrams
from tartan.data.remarks import warn
from tartan.data.text_task import TextTask
from tartan.errors import UserError

MOST_TEXTS = 100_000
"""Maximum number of auxiliary texts that are compared before a run, which takes a second or two.

`python -m src.check` compares more.
"""
_AT_ONCE = 10_000
"""Number of texts that are read into memory at a time."""


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
    held_out = [*task.dev.parts, *task.test.parts]
    found = count_in(corpus.texts, held_out)
    if found:
        leave_out = "auxiliary.decontaminate=true leaves them out"
        warn(
            "in_corpus",
            "auxiliary %s: %s of %s dev and test texts are in %s, so that the model is trained on "
            "texts that it is tested on; %s",
            name, f"{found:,}", f"{len(held_out):,}", corpus.source,
            leave_out if task.source.prefix else "remove them from it",
        )  # fmt: skip


def count_in(texts: datasets.Dataset, held_out: Sequence[tuple[str, ...]]) -> int:
    """Return how many held-out examples are in a corpus, regardless of case and white space.

    Args:
        texts: rows with the column `text`.
        held_out: the text, or both of a pair, of each example to look for; of a pair one is
            enough. Blank ones are not looked for.
    """
    wanted = [{one for text in own if (one := folded(text))} for own in held_out]
    known, found = set().union(*wanted), set[str]()
    for batch in texts.iter(_AT_ONCE):
        found.update(known.intersection(folded(text or "") for text in batch["text"]))
    return sum(not own.isdisjoint(found) for own in wanted)


def decontaminated(corpus: Corpus, task: TextTask, cache_dir: Path) -> tuple[Corpus, int]:
    """Return the corpus without contaminated texts, and the number of those.

    `HeldOutGrams.contaminates` finds them. Finding them reads the whole corpus, so their indices
    are cached in `cache_dir`.

    Raises:
        UserError: no text is left.
    """
    key = f"{corpus.fingerprint}:{task.digest()}:{WORDS}:{WORDS_VERSION}"
    name = hashlib.sha256(key.encode()).hexdigest()
    removed = cached_indices(
        cache_dir / "decontaminated", name, lambda: _contaminated(corpus, task)
    )
    if not len(removed):
        return corpus, 0
    kept = np.setdiff1d(np.arange(len(corpus.texts)), removed, assume_unique=True)
    if not len(kept):
        raise UserError(f"every text of {corpus.source} overlaps with a dev or test text")
    texts = corpus.texts.select(kept)
    return replace(corpus, texts=texts, fingerprint=f"{name}:decontaminated"), len(removed)


def _contaminated(corpus: Corpus, task: TextTask) -> np.ndarray:
    """Return the indices of the texts to leave out, ascending, int `(contaminated,)`."""
    held_out = HeldOutGrams.of(task.evaluated_texts)
    columns = [name for name in ("text", "text_pair") if name in corpus.texts.column_names]
    marks = [
        np.logical_or.reduce([held_out.contaminates(batch[name]) for name in columns])
        for batch in corpus.texts.iter(_AT_ONCE)
    ]
    return np.flatnonzero(np.concatenate(marks)) if marks else np.zeros(0, dtype=np.int64)
