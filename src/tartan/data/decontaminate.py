"""Finds dev and test texts in auxiliary text: warns of them, or leaves out what overlaps."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np

from tartan.data.cache import cached_indices
from tartan.data.corpus import Corpus
from tartan.data.overlap import WORDS, WORDS_VERSION, NgramIndex, folded
from tartan.data.text_task import TextTask
from tartan.errors import UserError

log = logging.getLogger(__name__)

_MOST = 100_000
"""Maximum number of auxiliary texts that are compared before a run; `src.check` compares more."""
_AT_ONCE = 10_000
"""Number of texts that are read into memory at a time."""


def warn_of_held_out_in(name: str, corpus: Corpus, task: TextTask) -> None:
    """Log how many dev and test texts are in a small corpus, that of auxiliary task `name`."""
    if len(corpus.texts) > _MOST:
        return
    held_out = [*task.dev.parts, *task.test.parts]
    if count := count_in(corpus.texts, held_out):
        log.warning(
            "auxiliary %s: %s of %s dev and test texts are in %s, so that the model is trained on "
            "texts that it is tested on; auxiliary.decontaminate=true leaves them out",
            name, f"{count:,}", f"{len(held_out):,}", corpus.source,
        )  # fmt: skip


def count_in(texts: datasets.Dataset, held_out: Sequence[tuple[str, ...]]) -> int:
    """Return how many held-out examples, of pairs either text, are in the column `text`."""
    wanted = [{key for text in parts if (key := folded(text))} for parts in held_out]
    known, present = set().union(*wanted), set[str]()
    for batch in texts.iter(_AT_ONCE):
        present.update(known.intersection(folded(text or "") for text in batch["text"]))
    return sum(not keys.isdisjoint(present) for keys in wanted)


def decontaminated(corpus: Corpus, task: TextTask, cache_dir: Path) -> tuple[Corpus, int]:
    """Return the corpus without texts that overlap with dev or test, and the number of those.

    Finding them reads the whole corpus, so their indices are cached in `cache_dir`.
    """
    key = f"{corpus.fingerprint}:{task.digest()}:{WORDS}:{WORDS_VERSION}"
    name = hashlib.sha256(key.encode()).hexdigest()

    def find() -> np.ndarray:
        index = NgramIndex(task.evaluated_texts)
        columns = [name for name in ("text", "text_pair") if name in corpus.texts.column_names]
        marks = [
            np.logical_or.reduce([index.contaminates(batch[name]) for name in columns])
            for batch in corpus.texts.iter(_AT_ONCE)
        ]
        return np.flatnonzero(np.concatenate(marks)) if marks else np.zeros(0, dtype=np.int64)

    removed = cached_indices(cache_dir / "decontaminated", name, find)
    if not len(removed):
        return corpus, 0
    kept = np.setdiff1d(np.arange(len(corpus.texts)), removed, assume_unique=True)
    if not len(kept):
        raise UserError(f"every text of {corpus.source} overlaps with a dev or test text")
    texts = corpus.texts.select(kept)
    return replace(corpus, texts=texts, fingerprint=f"{name}:decontaminated"), len(removed)
