"""Splits texts into two segments and joins segments, for outputs that predict their relation."""

from __future__ import annotations

import numpy as np

from tartan.objectives.base import Row
from tartan.objectives.vocabulary import Vocabulary

RELATION = "relation"
"""Column of the relation between a text's segments, 0 or 1; -1 where it has not got two."""


def split_segments(row: Row, vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Split a text at the end of the sentence that is nearest to its middle, or at its middle.

    Returns:
        The tokens of both segments, without special ones; both are empty where the text has fewer
        than two tokens.
    """
    tokens = np.asarray(row["input_ids"], dtype=np.int64)
    tokens = tokens[~np.isin(tokens, vocabulary.special_ids)]
    if len(tokens) < 2:
        return tokens[:0], tokens[:0]
    middle = len(tokens) // 2
    ends = 1 + np.flatnonzero(np.isin(tokens[:-1], vocabulary.sentence_ends))
    cut = int(ends[np.abs(ends - middle).argmin()]) if len(ends) else middle
    return tokens[:cut], tokens[cut:]


def join_segments(row: Row, first: np.ndarray, second: np.ndarray, relation: int) -> Row:
    """Join two segments to one text that is at most as long as `row`.

    It begins and ends with the first and the last token of `row`, which are special; the last also
    separates the segments. The second segment is truncated, by its last token at least: there is no
    room for the whole of the text's own, and a final full stop must not tell it from another's.

    Args:
        row: the text that is replaced. It is kept, with relation -1, where nothing is left of a
            segment.
        first: token ids of the first segment.
        second: token ids of the second segment.
        relation: the relation between them.

    Returns:
        `row` with `input_ids`, `token_type_ids` and the relation.
    """
    whole = np.asarray(row["input_ids"], dtype=np.int64)
    room = len(whole) - 3 - len(first)
    if min(len(first), len(second) - 1, room) < 1:
        return {**row, "token_type_ids": np.zeros_like(whole), RELATION: -1}
    second = second[: min(room, len(second) - 1)]
    begin, end = whole[:1], whole[-1:]
    return {
        **row,
        "input_ids": np.concatenate([begin, first, end, second, end]),
        "token_type_ids": np.repeat([0, 1], [len(first) + 2, len(second) + 1]),
        RELATION: relation,
    }
