"""Chooses texts of a corpus: a random part, those near to the end task, none that is held out."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tartan.core.seeding import generator_for
from tartan.data.corpus import Corpus, cached_file
from tartan.data.overlap import WORDS, WORDS_VERSION, NgramIndex, folded, words_of
from tartan.data.prepared import choose_rows
from tartan.data.text_task import TextTask
from tartan.errors import UserError

log = logging.getLogger(__name__)

_MOST_WARNED = 100_000
"""Maximum number of texts that are compared before a run; `tartan check` compares more."""
_MOST_RANKED = 1_000_000
"""Maximum number of texts that are ranked; of a larger corpus, a seeded random choice."""
_AT_ONCE = 10_000
"""Number of texts that are read into memory at a time."""


def choose_part(
    corpus: Corpus, task: TextTask, size: float, seed: int, option: str, cache_dir: Path
) -> Corpus:
    """Return so many rows of the corpus, as multiples of the task's; a smaller size gives a subset.

    Blank rows count, as they do in the paper's files, but are not trained on. `option`, which sets
    the size, is for the message.
    """
    chosen = choose_rows(len(corpus.texts), size, len(task.train), seed, option, corpus.source)
    fingerprint = f"{corpus.fingerprint}:{len(chosen)}:{seed}"
    return replace(corpus, texts=corpus.texts.select(chosen), fingerprint=fingerprint)


def warn_of_held_out_in(name: str, corpus: Corpus, task: TextTask) -> None:
    """Log how many dev and test texts are in a small corpus, that of auxiliary task `name`."""
    if len(corpus.texts) > _MOST_WARNED:
        return
    held_out = {folded(text) for text in task.evaluated_texts} - {""}
    if found := held_out.intersection(folded(text or "") for text in corpus.texts["text"]):
        log.warning(
            "auxiliary %s: %s dev and test texts are in %s, so that the model is trained on texts "
            "that it is tested on; auxiliary.decontaminate=true leaves them out",
            name, f"{len(found):,}", corpus.source,
        )  # fmt: skip


def decontaminated(corpus: Corpus, task: TextTask, cache_dir: Path) -> tuple[Corpus, int]:
    """Return the corpus without texts that overlap with dev or test, and the number of those."""
    name = _key(corpus, task, WORDS)

    def find() -> np.ndarray:
        index = NgramIndex(task.evaluated_texts)
        columns = [name for name in ("text", "text_pair") if name in corpus.texts.column_names]
        marks = [
            np.logical_or.reduce([index.contaminates(batch[name]) for name in columns])
            for batch in corpus.texts.iter(_AT_ONCE)
        ]
        return np.flatnonzero(np.concatenate(marks))

    removed = _cached(cache_dir / "decontaminated" / f"{name}.npy", find)
    if not len(removed):
        return corpus, 0
    kept = np.setdiff1d(np.arange(len(corpus.texts)), removed)
    if not len(kept):
        raise UserError(f"every text of {corpus.source} overlaps with a dev or test text")
    texts = corpus.texts.select(kept)
    return replace(corpus, texts=texts, fingerprint=f"{name}:decontaminated"), len(removed)


def choose_nearest(
    corpus: Corpus, task: TextTask, size: float, seed: int, option: str, cache_dir: Path
) -> Corpus:
    """Return the texts nearest to the end task's, of which `choose_part` would take as many."""
    available = len(corpus.texts)
    count = len(choose_rows(available, size, len(task.train), seed, option, corpus.source))
    if count > _MOST_RANKED:
        raise UserError(f"{option}={size:g} asks for more than the {_MOST_RANKED:,} of nearest")
    name = _key(corpus, task, count, seed, _MOST_RANKED, version("bm25s"))

    def find() -> np.ndarray:
        order = generator_for(seed, "corpus part").permutation(available)
        candidates = np.sort(order[:_MOST_RANKED])
        texts = corpus.texts.select(candidates)["text"][:]
        queries = [*task.train.texts, *(task.train.pairs or ())]
        return np.sort(candidates[nearest(texts, queries, count, seed)])

    places = _cached(cache_dir / "nearest" / f"{name}.npy", find)
    return replace(corpus, texts=corpus.texts.select(places), fingerprint=f"{name}:nearest")


def nearest(
    texts: Sequence[str | None], queries: Sequence[str], count: int, seed: int
) -> np.ndarray:
    """Return the indices of the `count` texts nearest to the queries, nearest first, `(count,)`.

    As in TLM (Yao et al. 2021), a text is ordered by the best rank that a query of BM25 gives it,
    then by its score there, then by its index. Those that share no word come last, in random order.
    """
    # JAX, which bm25s imports where it is there, would take most of a GPU's memory
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from bm25s import BM25

    rest = generator_for(seed, "nearest", "rest")
    documents = [words_of(text or "") for text in texts]
    if not any(documents):  # bm25s cannot index this
        return rest.permutation(len(texts))[:count]
    index = BM25()
    index.index(documents, show_progress=False)
    words = [split for split in map(words_of, dict.fromkeys(queries)) if split]
    most = min(len(texts), 16 + 4 * count // max(len(words), 1))
    while len(ranked := _ranked(index, words, most)) < count and most < len(texts):
        most = min(len(texts), 4 * most)
    others = np.setdiff1d(np.arange(len(texts)), ranked)
    return np.concatenate([ranked, rest.permutation(others)])[:count]


def _ranked(index: Any, queries: Sequence[list[str]], most: int) -> np.ndarray:
    """Return the indices of texts among the first `most` of a query, in the order of `nearest`."""
    ranks = [pd.DataFrame({"text": [], "rank": [], "score": []}, dtype=int)]
    for words in queries:
        scores = index.get_scores(words)
        # all that score as much as the last that counts: of equal ones, the first is to win
        least = np.partition(scores, -most)[-most]
        texts = np.flatnonzero((scores >= least) & (scores > 0))
        texts = texts[np.lexsort((texts, -scores[texts]))][:most]
        columns = {"text": texts, "rank": np.arange(len(texts)), "score": -scores[texts]}
        ranks.append(pd.DataFrame(columns))
    ordered = pd.concat(ranks).sort_values(["rank", "score", "text"])["text"]
    return np.asarray(ordered.drop_duplicates(), dtype=np.int64)


def _key(corpus: Corpus, task: TextTask, *settings: object) -> str:
    parts = [corpus.fingerprint, task.digest(), *settings, WORDS_VERSION]
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()


def _cached(file: Path, find: Callable[[], np.ndarray]) -> np.ndarray:
    """Return what `find` returns, from a file where it was stored before."""

    def write(path: Path) -> None:
        with path.open("wb") as stream:  # numpy would append its ending to a path
            np.save(stream, find())

    indices: np.ndarray = np.load(cached_file(file, write))
    return indices
