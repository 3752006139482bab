"""Texts as two segments, for outputs that predict how the two belong together."""

from __future__ import annotations

import numpy as np

from src.objectives.base import Row
from src.objectives.vocabulary import Vocabulary

RELATION = "relation"
"""Column of an arranged text: how its segments belong together, or -1 for a text of one token."""


def segments(row: Row, vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Split a text in two: at the end of a sentence nearest to its middle, else at its middle.

    Returns:
        The tokens of both, without special ones; both are empty where there are fewer than two.
    """
    tokens = np.asarray(row["input_ids"], dtype=np.int64)
    tokens = tokens[~np.isin(tokens, vocabulary.special_ids)]
    if len(tokens) < 2:
        return tokens[:0], tokens[:0]
    middle = len(tokens) // 2
    ends = 1 + np.flatnonzero(np.isin(tokens[:-1], vocabulary.sentence_ends))
    cut = int(ends[np.abs(ends - middle).argmin()]) if len(ends) else middle
    return tokens[:cut], tokens[cut:]


def joined(row: Row, first: np.ndarray, second: np.ndarray, relation: int) -> Row:
    """Return two segments as one text of at most the length of `row`.

    Its first and last token, which are special, begin and end it; the last also stands between
    the segments. The second segment loses what is too much.

    Args:
        row: the text whose place they take; where one is empty, it stays, without a relation.
    """
    whole = np.asarray(row["input_ids"], dtype=np.int64)
    room = len(whole) - 3 - len(first)
    if min(len(first), len(second), room) < 1:
        return {**row, "token_type_ids": np.zeros_like(whole), RELATION: -1}
    second = second[:room]
    begin, end = whole[:1], whole[-1:]
    return {
        **row,
        "input_ids": np.concatenate([begin, first, end, second, end]),
        "token_type_ids": np.repeat([0, 1], [len(first) + 2, len(second) + 1]),
        RELATION: relation,
    }
