"""New splits of a task whose published ones share texts: all examples of one text on one side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from src.core.seeding import generator_for
from src.data.alike import alike
from src.data.overlap import words_of
from src.errors import UserError


def same_texts(texts: Sequence[str]) -> np.ndarray:
    """The number of the group that each text is in, `(texts,)`.

    Texts that are equal regardless of case, white space and punctuation are in one group, and so
    are near-duplicates and whatever is one of theirs.
    """
    plain = [" ".join(words_of(text)) for text in texts]
    last = {text: place for place, text in enumerate(plain)}
    near = alike(texts, texts)
    rows = np.concatenate([np.arange(len(texts)), near.own])
    columns = np.concatenate([[last[text] for text in plain], near.other])
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
