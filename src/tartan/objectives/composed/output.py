"""Outputs, which decide what is predicted from a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.encoders.heads import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row, token_losses
from tartan.objectives.composed.representation import no_positions
from tartan.objectives.masked_lm import Rng, Vocabulary
from tartan.settings import Below1, Checked, Count

Targets = tuple[np.ndarray, np.ndarray]
"""Positions in the text, ascending, and the target at each: `(n,)` both."""
RELATION = "relation"
"""Column of the relation between a text's segments, 0 or 1; -1 where it has not got two."""


@dataclass(frozen=True)
class Output(ABC):
    """Decides what is predicted from a text, by a head that all objectives of an output share."""

    needs_labels: ClassVar[bool] = False  # whether it predicts the end task's label
    needs_both_sides: ClassVar[bool] = False  # whether states must attend to both sides
    predicts_tokens: ClassVar[bool] = False

    def fit(self, rows: Sequence[Row], vocabulary: Vocabulary) -> Self:
        """Return this output with statistics of all tokenised texts."""
        return self

    def arrange(self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: Rng) -> Row:
        """Rearrange the text `rows[index]`, of the rows up to it, before the transform."""
        return rows[index]

    @abstractmethod
    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        """Return the targets of a text: its `tokens` before the transform, and those `chosen`."""

    @abstractmethod
    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        """Return a new head, where the end task has `classes` labels."""

    @abstractmethod
    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each target, `(n,)`."""


class Denoise(Output):
    """Predicts the chosen tokens, with a masked-LM head tied to the word embeddings."""

    predicts_tokens = True

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        positions = np.flatnonzero(chosen)
        return positions, tokens[positions]

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return encoder.new_mlm_head()

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return token_losses(body, head, features, targets)


@dataclass(frozen=True)
class TfIdf(Checked, Output):
    """Predicts the TF-IDF weight of each chosen token in its text, with squared error.

    The weight is `ln(1 + tf idf)`, where `tf` is the token's count in the text, and
    `idf = 1 + ln((1 + N) / (1 + df))` if `df` of `N` texts hold the token.

    Attributes:
        texts: maximum number of texts for `idf`; from more, evenly spaced ones are taken [texts].
        dropout: dropout probability of the head.
    """

    predicts_tokens = True
    texts: Count = 20_000
    dropout: Below1 = 0.1
    idf: np.ndarray | None = field(default=None, init=False, repr=False, compare=False)

    def fit(self, rows: Sequence[Row], vocabulary: Vocabulary) -> Self:
        counted = min(len(rows), self.texts)
        holding = np.zeros(vocabulary.size)
        for number in range(counted):
            tokens = rows[number * len(rows) // counted]["input_ids"]
            holding[np.unique(np.asarray(tokens, dtype=np.int64))] += 1
        fitted = replace(self)
        # not an argument: checkpoints describe an objective by its arguments, which are plain
        object.__setattr__(fitted, "idf", 1 + np.log((1 + counted) / (1 + holding)))
        return fitted

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        assert self.idf is not None, "call fit first"
        positions = np.flatnonzero(chosen)
        distinct, inverse, counts = np.unique(tokens, return_inverse=True, return_counts=True)
        weights = np.log1p(counts * self.idf[distinct])[inverse]
        return positions, weights[positions].astype(np.float32)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, 1, self.dropout)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        predicted = head(features).squeeze(-1).float()
        return F.mse_loss(predicted, targets.float(), reduction="none")


@dataclass(frozen=True)
class _FirstToken(Checked, Output):
    """Predicts a class from the first token's state, with a `ClassifierHead`.

    Attributes:
        dropout: dropout probability of the head.
    """

    needs_both_sides = True
    dropout: Below1 = 0.1

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(head(features), targets, reduction="none")


class EndLabel(_FirstToken):
    """Predicts the end task's label of a transformed text, with a head apart from the task's."""

    needs_labels = True

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        return np.zeros(1, dtype=np.int64), np.asarray([row["label"]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, classes, self.dropout)


class _Relation(_FirstToken):
    """Predicts the relation of two segments; a text without two has no target."""

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        if row[RELATION] < 0:
            return no_positions(), no_positions()
        return np.zeros(1, dtype=np.int64), np.asarray([row[RELATION]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, 2, self.dropout)


class SentenceOrder(_Relation):
    """Predicts whether a text's segments are in order (1) or swapped, as ALBERT does."""

    def arrange(self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: Rng) -> Row:
        first, second = split_segments(rows[index], vocabulary)
        in_order = rng.random() < 0.5
        if not in_order:
            first, second = second, first
        return join_segments(rows[index], first, second, int(in_order))


class NextSentence(_Relation):
    """Predicts whether a text's second segment is its own (1) or another text's (0), as BERT does.

    With probability 1/2 it is replaced by the second segment of an earlier text in the batch, if
    that has one.
    """

    def arrange(self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: Rng) -> Row:
        first, second = split_segments(rows[index], vocabulary)
        coin, other = rng.random(2)
        foreign = second[:0]
        if coin < 0.5:
            _, foreign = split_segments(rows[int(other * index)], vocabulary)
        follows = index == 0 or len(foreign) == 0
        return join_segments(rows[index], first, second if follows else foreign, int(follows))


def split_segments(row: Row, vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Split a text, without special tokens, at its sentence end nearest to the middle, if any."""
    tokens = np.asarray(row["input_ids"], dtype=np.int64)
    tokens = tokens[~np.isin(tokens, vocabulary.special_ids)]
    if len(tokens) < 2:
        return tokens[:0], tokens[:0]
    middle = len(tokens) // 2
    ends = 1 + np.flatnonzero(np.isin(tokens[:-1], vocabulary.sentence_ends))
    cut = int(ends[np.abs(ends - middle).argmin()]) if len(ends) else middle
    return tokens[:cut], tokens[cut:]


def join_segments(row: Row, first: np.ndarray, second: np.ndarray, relation: int) -> Row:
    """Return `row` with two segments as its text, at most as long, their types and relation.

    The second segment is truncated, by its last token at least: a final full stop must not tell the
    text's own from another's. Where nothing is left of a segment, the text is kept.
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
