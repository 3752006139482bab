"""Removes texts that overlap with dev and test texts from auxiliary text."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from src.data.cached_file import cached_indices
from src.data.corpus import Corpus
from src.data.overlap import WORDS, WORDS_VERSION, HeldOutGrams
from src.data.text_task import TextTask
from src.errors import UserError

_AT_ONCE = 10_000
"""Number of texts that are read into memory at a time."""


def held_out_of(task: TextTask) -> HeldOutGrams:
    """Return the task's dev and test texts, both texts of each pair."""
    return HeldOutGrams.of(task.evaluated_texts)


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
        cache_dir / "decontaminated", name, lambda: _contaminated(corpus, held_out_of(task))
    )
    if not len(removed):
        return corpus, 0
    kept = np.setdiff1d(np.arange(len(corpus.texts)), removed, assume_unique=True)
    if not len(kept):
        raise UserError(f"every text of {corpus.source} overlaps with a dev or test text")
    texts = corpus.texts.select(kept)
    return replace(corpus, texts=texts, fingerprint=f"{name}:decontaminated"), len(removed)


def _contaminated(corpus: Corpus, held_out: HeldOutGrams) -> np.ndarray:
    """Return the indices of the texts to leave out, ascending, int `(contaminated,)`."""
    columns = [name for name in ("text", "text_pair") if name in corpus.texts.column_names]
    marks = [
        np.logical_or.reduce([held_out.contaminates(batch[name]) for name in columns])
        for batch in corpus.texts.iter(_AT_ONCE)
    ]
    return np.flatnonzero(np.concatenate(marks)) if marks else np.zeros(0, dtype=np.int64)
