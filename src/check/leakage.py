"""The same content twice: inside a split, across splits, and in the auxiliary text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd

from src.core.seeding import generator_for
from src.data.overlap import HeldOutGrams

MOST_CORPUS_TEXTS = 1_000_000
"""Texts of a corpus that are compared; of more, a seeded sample."""
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Contents:
    """A split's examples as 64-bit hashes of their content, and their labels.

    Attributes:
        exact: of the content as it is, `(examples,)`.
        folded: the same regardless of case and white space.
        labels: as indices, `(examples,)`.
    """

    exact: np.ndarray
    folded: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Repeated:
    """Content that a split holds more than once.

    Attributes:
        split: which.
        examples: how many it has.
        exact: examples beyond the first of each content.
        folded: the same regardless of case and white space.
        contradictory: contents (regardless of case and white space) with several labels.
        contradicted: examples that have one of these.
    """

    split: str
    examples: int
    exact: int
    folded: int
    contradictory: int
    contradicted: int


@dataclass(frozen=True)
class Shared:
    """Examples of a split whose content another split has too.

    Attributes:
        split: whose examples are counted.
        other: where their content is as well.
        examples: how many the split has.
        exact: how many of them are there as they are.
        folded: the same regardless of case and white space.
        other_label: how many of the latter have a label there that is never theirs.
    """

    split: str
    other: str
    examples: int
    exact: int
    folded: int
    other_label: int


@dataclass(frozen=True)
class InCorpus:
    """Labelled examples whose whole text is a text of an auxiliary corpus.

    Attributes:
        auxiliary: its name.
        texts: of the corpus, blank ones not counted, that were compared.
        whole: whether these are all.
        sharing: texts of it that share 13 words in a row with a dev or test text (see
            `src.data.overlap`); None where that was not counted.
        repeated: texts of it beyond the first of each, regardless of case and white space.
        exact: examples that are in it as they are, by split (dev and test).
        folded: the same regardless of case and white space.
    """

    auxiliary: str
    texts: int
    whole: bool
    repeated: int
    exact: dict[str, int]
    folded: dict[str, int]
    sharing: int | None = None


def folded(text: str) -> str:
    """The text regardless of case and white space."""
    return " ".join(text.casefold().split())


def hashes(contents: Iterable[str | bytes]) -> np.ndarray:
    """A 64-bit hash of each content, `(contents,)`; of a million, two agree by chance once in
    forty million times.
    """
    column = np.fromiter(contents, dtype=object)
    hashed: np.ndarray = pd.util.hash_array(column, categorize=False)
    return hashed


def contents_of(contents: Sequence[str | bytes], labels: np.ndarray) -> Contents:
    """A split as hashes; what is no text has no case."""
    plain = [folded(content) if isinstance(content, str) else content for content in contents]
    return Contents(hashes(contents), hashes(plain), labels)


def repeated(split: str, contents: Contents) -> Repeated:
    """Count what a split holds more than once."""
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
    """Count what `split` has in common with another."""
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
    """Count the examples of dev and test that a corpus holds.

    Args:
        texts: rows with the column `text`; blank ones are left out.
        splits: `dev` and `test` among them.
        held_out: their texts, to count the texts of the corpus that overlap with one.
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
    apart = {name: splits[name] for name in ("dev", "test")}
    return InCorpus(
        auxiliary=auxiliary,
        texts=len(all_plain),
        whole=whole,
        repeated=len(all_plain) - len(distinct),
        exact={n: int(np.isin(c.exact, all_exact).sum()) for n, c in apart.items()},
        folded={n: int(np.isin(c.folded, distinct).sum()) for n, c in apart.items()},
        sharing=sharing,
    )
