"""Finds content that occurs twice: in a split, in two splits, or in a split and a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd

from src.core.seeding import generator_for
from src.data.held_out_in_corpus import folded
from src.data.overlap import HeldOutGrams

MOST_CORPUS_TEXTS = 1_000_000
"""Maximum number of a corpus' texts that are compared; of a larger one, a seeded sample."""
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Contents:
    """A split's examples as 64-bit hashes of their content, with their labels.

    Attributes:
        exact: hashes of the contents, uint64 `(examples,)`.
        folded: hashes of the contents regardless of case and white space, uint64 `(examples,)`.
        labels: label indices, int `(examples,)`.
    """

    exact: np.ndarray
    folded: np.ndarray
    labels: np.ndarray


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
            `src.data.overlap`); None where that was not counted.
        repeated: number of its texts beyond the first of each, regardless of case and white space.
        exact: number of examples in the corpus, by split (dev and test).
        folded: the same regardless of case and white space.
    """

    auxiliary: str
    texts: int
    whole: bool
    repeated: int
    exact: dict[str, int]
    folded: dict[str, int]
    sharing: int | None = None


def hashes(contents: Iterable[str | bytes]) -> np.ndarray:
    """Return a 64-bit hash of each content, uint64 `(contents,)`.

    Among a million contents, the probability that two different ones have the same hash is one in
    forty million.
    """
    column = np.fromiter(contents, dtype=object)
    hashed: np.ndarray = pd.util.hash_array(column, categorize=False)
    return hashed


def contents_of(contents: Sequence[str | bytes], labels: np.ndarray) -> Contents:
    """Return the contents of a split as hashes; only texts are compared regardless of case."""
    plain = [folded(content) if isinstance(content, str) else content for content in contents]
    return Contents(hashes(contents), hashes(plain), labels)


def repeated(split: str, contents: Contents) -> Repeated:
    """Count the contents that a split holds more than once."""
    count = len(contents.exact)
    frame = pd.DataFrame({"content": contents.folded, "label": contents.labels})
    several = frame.groupby("content")["label"].nunique() > 1
    return Repeated(
        split=split,
        examples=count,
        exact=count - len(np.unique(contents.exact)),
        folded=count - len(np.unique(contents.folded)),
        contradictory=int(several.sum()),
        contradicted=int(frame["content"].map(several).sum()),
    )


def shared(split: str, own: Contents, other: str, others: Contents) -> Shared:
    """Count the examples of `split` whose content is in another split."""
    there = np.isin(own.folded, others.folded)
    pairs = pd.MultiIndex.from_arrays([own.folded, own.labels])
    same = pairs.isin(pd.MultiIndex.from_arrays([others.folded, others.labels]))
    return Shared(
        split=split,
        other=other,
        examples=len(own.exact),
        exact=int(np.isin(own.exact, others.exact).sum()),
        folded=int(there.sum()),
        other_label=int((there & ~same).sum()),
    )


def in_corpus(
    auxiliary: str,
    texts: datasets.Dataset,
    splits: Mapping[str, Contents],
    most: int = MOST_CORPUS_TEXTS,
    held_out: HeldOutGrams | None = None,
) -> InCorpus:
    """Count the dev and test examples whose text is in a corpus.

    Args:
        auxiliary: name of the auxiliary task.
        texts: rows with the column `text`; blank ones are left out.
        splits: contents by split; those of `train` are not counted.
        most: maximum number of texts that are compared.
        held_out: dev and test texts, to count the corpus' texts that overlap with one; None does
            not count these.
    """
    whole = len(texts) <= most
    if not whole:
        order = generator_for(0, "check", "corpus", auxiliary).permutation(len(texts))
        texts = texts.select(np.sort(order[:most]))
    exact, plain = [], []
    sharing = None if held_out is None else 0
    for batch in texts.iter(_AT_ONCE):
        filled = [text for text in batch["text"] if text and not text.isspace()]
        exact.append(hashes(filled))
        plain.append(hashes(map(folded, filled)))
        if held_out is not None and sharing is not None:
            sharing += int(held_out.contaminates(filled).sum())
    all_exact, all_plain = np.unique(np.concatenate(exact)), np.concatenate(plain)
    distinct = np.unique(all_plain)
    apart = {name: own for name, own in splits.items() if name != "train"}
    return InCorpus(
        auxiliary=auxiliary,
        texts=len(all_plain),
        whole=whole,
        repeated=len(all_plain) - len(distinct),
        exact={n: int(np.isin(c.exact, all_exact).sum()) for n, c in apart.items()},
        folded={n: int(np.isin(c.folded, distinct).sum()) for n, c in apart.items()},
        sharing=sharing,
    )
