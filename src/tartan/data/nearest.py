"""Chooses the texts of a corpus that are nearest to the end task's training texts, by BM25.

As in TLM (Yao et al. 2021, "NLP from scratch without large-scale pretraining"): each training text
is a query, and the corpus' texts are taken by the best rank that any query gives them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import bm25s
import numpy as np
import pandas as pd

from tartan.core.seeding import generator_for
from tartan.data.cache import cached_indices
from tartan.data.corpus import Corpus
from tartan.data.order import RandomOrder, choose_rows
from tartan.data.overlap import WORDS_VERSION, words_of
from tartan.data.text_task import TextTask
from tartan.errors import UserError

MOST = 1_000_000
"""Maximum number of texts that are compared; of a larger corpus, a seeded random choice."""


def choose_nearest(
    corpus: Corpus, task: TextTask, size: float, seed: int, option: str, cache_dir: Path
) -> Corpus:
    """Return the texts nearest to the end task's; a smaller size gives a subset of them.

    `size` is in multiples of the task's training examples; `option`, which sets it, is for the
    message. Texts that share no word with the task are in an order of the `seed`.
    """
    available, examples = len(corpus.texts), len(task.train)
    count = len(choose_rows(available, size, examples, seed, option, corpus.source))
    if count > MOST:
        raise UserError(f"{option}={size:g} asks for more than the {MOST:,} texts of nearest")
    versions = f"{bm25s.__version__}:{WORDS_VERSION}"
    key = f"{corpus.fingerprint}:{task.digest()}:{count}:{seed}:{MOST}:{versions}"
    name = hashlib.sha256(key.encode()).hexdigest()

    def find() -> np.ndarray:
        order = RandomOrder(available, generator_for(seed, "corpus part"))
        candidates = np.sort(order.part(0, min(available, MOST)))
        texts = corpus.texts.select(candidates)["text"][:]
        queries = [*task.train.texts, *(task.train.pairs or ())]
        return np.sort(candidates[nearest(texts, queries, count, seed)])

    places = cached_indices(cache_dir / "nearest", name, find)
    return replace(corpus, texts=corpus.texts.select(places), fingerprint=f"{name}:nearest")


def nearest(
    texts: Sequence[str | None], queries: Sequence[str], count: int, seed: int
) -> np.ndarray:
    """Return the indices of the `count` texts nearest to the queries, nearest first, `(count,)`.

    A text is ordered by the best rank that a query gives it, then by its score there, then by its
    index. Texts that share no word with any query come last, in random order.
    """
    rest = generator_for(seed, "nearest", "rest")
    documents = [words_of(text or "") for text in texts]
    if not any(documents):  # bm25s cannot index this
        return rest.permutation(len(texts))[:count]
    index = bm25s.BM25()
    index.index(documents, show_progress=False)
    words = [split for split in map(words_of, dict.fromkeys(queries)) if split]
    most = min(len(texts), 16 + 4 * count // max(len(words), 1))
    while len(ranked := _ranked(index, words, most)) < count and most < len(texts):
        most = min(len(texts), 4 * most)
    if len(ranked) < count:
        others = np.setdiff1d(np.arange(len(texts)), ranked)
        ranked = np.concatenate([ranked, rest.permutation(others)])
    return ranked[:count]


def _ranked(index: bm25s.BM25, queries: Sequence[list[str]], most: int) -> np.ndarray:
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
