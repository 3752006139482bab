"""Finds content that occurs twice: in a split, in two splits, or in a split and a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd

from tartan.core.seeding import generator_for
from tartan.data.decontaminate import folded
from tartan.data.overlap import HeldOutGrams

MOST_CORPUS_TEXTS = 1_000_000
"""Maximum number of a corpus' texts that are compared; of a larger one, a seeded sample."""
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Repeated:
    """Numbers of examples whose content occurs more than once in a split.

    Attributes:
        split: name of the split.
        examples: number of its examples.
        exact: number of examples beyond the first of each content.
        folded: the same regardless of case and white space.
        contradictory: number of contents (regardless of case and white space) with several labels.
        contradicted: number of examples with such a content.
    """

    split: str
    examples: int
    exact: int
    folded: int
    contradictory: int
    contradicted: int


@dataclass(frozen=True)
class Shared:
    """Numbers of examples of a split whose content is also in another split.

    Attributes:
        split: name of the split whose examples are counted.
        other: name of the other split.
        examples: number of examples in the split.
        exact: number of those whose content is in the other split.
        folded: the same regardless of case and white space.
        other_label: number of the latter that have only other labels in the other split.
    """

    split: str
    other: str
    examples: int
    exact: int
    folded: int
    other_label: int


@dataclass(frozen=True)
class InCorpus:
    """Numbers of labelled examples whose whole text is in an auxiliary corpus.

    Attributes:
        auxiliary: name of the auxiliary task.
        texts: number of the corpus' texts that were compared, without blank ones.
        whole: whether these are all texts of the corpus.
        sharing: number of its texts that share 13 words in a row with a dev or test text (see
            `tartan.data.overlap`).
        repeated: number of its texts beyond the first of each, regardless of case and white space.
        exact: number of examples in the corpus, by split (dev and test).
        folded: the same regardless of case and white space.
    """

    auxiliary: str
    texts: int
    whole: bool
    sharing: int
    repeated: int
    exact: dict[str, int]
    folded: dict[str, int]


def hashes(contents: Iterable[str | bytes]) -> np.ndarray:
    """Return a 64-bit hash of each content, uint64 `(contents,)`.

    Among a million contents, the probability that two different ones have the same hash is one in
    forty million.
    """
    column = np.fromiter(contents, dtype=object)
    hashed: np.ndarray = pd.util.hash_array(column, categorize=False)
    return hashed


def contents_of(contents: Sequence[str | bytes], labels: np.ndarray) -> pd.DataFrame:
    """Return the examples of a split: their contents as hashes, and their labels.

    The columns are `exact`, `folded` (regardless of case and white space, for texts) and `label`.
    """
    plain = [folded(content) if isinstance(content, str) else content for content in contents]
    return pd.DataFrame({"exact": hashes(contents), "folded": hashes(plain), "label": labels})


def repeated(split: str, own: pd.DataFrame) -> Repeated:
    """Count the contents that a split (see `contents_of`) holds more than once."""
    several = own.groupby("folded")["label"].nunique() > 1
    return Repeated(
        split=split,
        examples=len(own),
        exact=int(own["exact"].duplicated().sum()),
        folded=int(own["folded"].duplicated().sum()),
        contradictory=int(several.sum()),
        contradicted=int(own["folded"].map(several).sum()),
    )


def shared(split: str, own: pd.DataFrame, other: str, others: pd.DataFrame) -> Shared:
    """Count the examples of `split` whose content is in another split (see `contents_of`)."""
    there = own["folded"].isin(others["folded"])
    labelled, known = (pd.MultiIndex.from_frame(one[["folded", "label"]]) for one in (own, others))
    return Shared(
        split=split,
        other=other,
        examples=len(own),
        exact=int(own["exact"].isin(others["exact"]).sum()),
        folded=int(there.sum()),
        other_label=int((there & ~labelled.isin(known)).sum()),
    )


def in_corpus(
    auxiliary: str,
    texts: datasets.Dataset,
    splits: Mapping[str, pd.DataFrame],
    held_out: HeldOutGrams,
    most: int = MOST_CORPUS_TEXTS,
) -> InCorpus:
    """Count the dev and test examples whose text is in a corpus.

    Args:
        auxiliary: name of the auxiliary task.
        texts: rows with the column `text`; blank ones are left out.
        splits: contents by split (see `contents_of`); those of `train` are not counted.
        held_out: dev and test texts, with which the corpus' texts may share words.
        most: maximum number of texts that are compared.
    """
    whole = len(texts) <= most
    if not whole:
        order = generator_for(0, "check", "corpus", auxiliary).permutation(len(texts))
        texts = texts.select(np.sort(order[:most]))
    sharing, parts = 0, []
    for batch in texts.iter(_AT_ONCE):
        filled = [text for text in batch["text"] if text and not text.isspace()]
        sharing += int(held_out.contaminates(filled).sum())
        parts.append(contents_of(filled, np.zeros(len(filled))))
    found = pd.concat(parts)
    apart = {name: own for name, own in splits.items() if name != "train"}
    return InCorpus(
        auxiliary=auxiliary,
        texts=len(found),
        whole=whole,
        sharing=sharing,
        repeated=int(found["folded"].duplicated().sum()),
        exact={name: int(own["exact"].isin(found["exact"]).sum()) for name, own in apart.items()},
        folded={n: int(own["folded"].isin(found["folded"]).sum()) for n, own in apart.items()},
    )
