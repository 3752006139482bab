"""Exchanges examples of two parts such that each has enough of every label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np


def with_every_label(
    labels: Sequence[str],
    taken: Sequence[int],
    left: Sequence[int],
    least: tuple[int, int],
    generator: np.random.Generator,
) -> tuple[list[int], list[int]]:
    """Return two parts of the same sizes, each with at least so many examples of every label.

    Parts that have them are returned as they are. Otherwise random examples of the label are
    exchanged for ones of the label of which the part has most.

    Args:
        labels: the labels of all examples.
        taken: indices of the examples in one part.
        left: indices of those in the other; together they have `sum(least)` of every label.
        least: number of examples of every label that each of the two has at least; each part has at
            least `least` x number of labels examples.
        generator: draws which ones are exchanged.
    """
    parts = (list(taken), list(left))
    counts = tuple(Counter(labels[index] for index in part) for part in parts)
    for label in sorted(counts[0].keys() | counts[1].keys()):
        for own, other in ((0, 1), (1, 0)):
            while counts[own][label] < least[own]:
                often = max(sorted(counts[own]), key=counts[own].__getitem__)
                for giver, receiver, given in ((other, own, label), (own, other, often)):
                    choice = [index for index in parts[giver] if labels[index] == given]
                    chosen = choice[generator.integers(len(choice))]
                    parts[giver].remove(chosen)
                    parts[receiver].append(chosen)
                    counts[giver][given] -= 1
                    counts[receiver][given] += 1
    return parts
