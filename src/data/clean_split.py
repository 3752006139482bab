"""New splits of a task whose published ones share texts: all examples of one text on one side."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from src.configuration import check_whole
from src.errors import UserError
from src.seeding import generator_for

WORDS = 3
"""Words in a row by which texts are compared."""
ALIKE = 0.5
"""Share of these that two texts have in common (Jaccard), of what either has, to be the same text
but for small changes."""
_WORD = re.compile(r"\w+")
_FREQUENT = 1000
"""Word sequences that more texts have are phrases of the field and tell nothing."""


def same_texts(texts: Sequence[str]) -> np.ndarray:
    """The number of the group that each text is in, `(texts,)`.

    Texts that are equal regardless of case, white space and punctuation are in one group, and so
    are near-duplicates and whatever is one of theirs.
    """
    words = [" ".join(_WORD.findall(text.casefold())) for text in texts]
    whole = {text: place for place, text in enumerate(words)}
    places = np.arange(len(texts))
    equal = places, np.array([whole[text] for text in words])
    alike = _near_duplicates(words)
    rows, columns = (np.concatenate(pair) for pair in zip(equal, alike, strict=True))
    shape = (len(texts), len(texts))
    links = sparse.coo_matrix((np.ones(len(rows), dtype=bool), (rows, columns)), shape)
    _, groups = sparse.csgraph.connected_components(links, directed=False)
    return np.asarray(groups)


def clean_split(
    groups: Sequence[int], labels: Sequence[str], sizes: Mapping[str, int], seed: int, name: str
) -> list[str]:
    """The split of each example, no group in two of them, every label by its share.

    Groups are taken in random order; test and dev take one as long as none of its labels has more
    than its share there, and train takes the others. So large groups come to lie in train.

    Args:
        groups: of each example.
        labels: of each example.
        sizes: how many examples each of `train`, `dev` and `test` is to have; dev and test have at
            most so many.
        seed: of the order.
        name: the task's, for messages.

    Raises:
        UserError: train would lack a label.
    """
    check_whole(seed, "task.split_seed", least=0)
    counts, total = Counter(labels), len(labels)
    free = {
        split: {label: round(count * sizes[split] / total) for label, count in counts.items()}
        for split in ("test", "dev")
    }
    members: dict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    found = ["train"] * total
    order = list(members.values())
    for place in generator_for(seed, "clean split").permutation(len(order)):
        own = Counter(labels[index] for index in order[place])
        for split, left in free.items():
            if all(left[label] >= number for label, number in own.items()):
                for label, number in own.items():
                    left[label] -= number
                for index in order[place]:
                    found[index] = split
                break
    missing = counts.keys() - {
        label for label, own in zip(labels, found, strict=True) if own == "train"
    }
    if missing:
        raise UserError(
            f"task {name} cannot be split anew: train would have no example of "
            f"{', '.join(sorted(missing))}; use task.split=published, or another task.split_seed"
        )
    return found


def _near_duplicates(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of texts that are alike, as two arrays of their places."""
    counter = CountVectorizer(
        ngram_range=(WORDS, WORDS), binary=True, token_pattern=None, tokenizer=str.split
    )
    try:
        grams = counter.fit_transform(texts).astype(np.int32)
    except ValueError:  # no text has so many words
        return np.empty(0, dtype=int), np.empty(0, dtype=int)
    sizes = grams.getnnz(axis=1)
    rare = grams[:, grams.getnnz(axis=0) <= _FREQUENT]
    common = (rare @ rare.T).tocoo()
    either = sizes[common.row] + sizes[common.col] - common.data
    alike = common.data >= ALIKE * either
    return common.row[alike], common.col[alike]
