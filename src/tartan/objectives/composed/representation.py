"""Representations, which decide which positions attend to which, and which predict a token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tartan.objectives.masked_lm import Rng
from tartan.settings import Checked, Share


def no_positions() -> np.ndarray:
    """Return an empty array of positions."""
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class View:
    """How the body reads a text: its attention, and the positions whose states predict tokens."""

    read_at: np.ndarray  # for each token to predict, the position that predicts it
    # True where the row's position attends to the column's, bool `(positions, positions)` of the
    # text and its queries; None where all attend to all
    pair_mask: np.ndarray | None = None
    # for each mask token to append (a query), the position in the text that it stands for
    queries: np.ndarray = field(default_factory=no_positions)


@dataclass(frozen=True)
class Representation(ABC):
    """Decides which positions attend to which, and which position's state predicts a token."""

    sees_both_sides: ClassVar[bool]  # whether positions attend to the text on both sides of them
    restricts_attention: ClassVar[bool]  # whether its views have a `pair_mask`

    @abstractmethod
    def view(self, length: int, predicted: np.ndarray, rng: Rng) -> View:
        """Return how the body reads a text of `length` tokens, special ones included.

        `predicted` are the positions of the tokens to predict, ascending, without the first and the
        last position. `rng` is the only source of randomness.
        """


class Bidirectional(Representation):
    """Predicts a token at its own position, as BERT does, which sees the transformed token."""

    sees_both_sides = True
    restricts_attention = False

    def view(self, length: int, predicted: np.ndarray, rng: Rng) -> View:
        return View(read_at=predicted)


class LeftToRight(Representation):
    """Predicts a token at the position before it, as a language model does."""

    sees_both_sides = False
    restricts_attention = True

    def view(self, length: int, predicted: np.ndarray, rng: Rng) -> View:
        return View(read_at=predicted - 1, pair_mask=np.tri(length, dtype=bool))


class RightToLeft(Representation):
    """Predicts a token at the position after it, as a backward language model does."""

    sees_both_sides = False
    restricts_attention = True

    def view(self, length: int, predicted: np.ndarray, rng: Rng) -> View:
        return View(read_at=predicted + 1, pair_mask=np.tri(length, dtype=bool).T)


@dataclass(frozen=True)
class RandomFactorised(Checked, Representation):
    """Keeps a random share of the pairs of positions that attend, and hides the predicted tokens.

    Removing pairs at random does not hide a token: over several layers it reaches its own position
    through others. Therefore, as in XLNet (Yang et al., 2019), the predicted tokens come last in a
    random factorisation order, and each is predicted at a mask token of its own (a query), which
    attends to itself. Tokens and queries attend to tokens that are not predicted; predicted tokens
    and queries also to predicted tokens earlier in the order; all to the first position.

    Attributes:
        kept: share of the pairs that is kept (paper's code: 0.6).
    """

    sees_both_sides = True
    restricts_attention = True
    kept: Share = 0.6

    def view(self, length: int, predicted: np.ndarray, rng: Rng) -> View:
        count = len(predicted)
        total = length + count
        order = np.zeros(total, dtype=np.int64)  # in the factorisation; 0: not predicted
        order[predicted] = 1 + rng.permutation(count)
        order[length:] = order[predicted]
        kept = rng.random((total, total), dtype=np.float32) < self.kept
        itself = np.eye(total, dtype=bool)
        before = (order[None, :] == 0) | (order[None, :] < order[:, None])
        pair_mask = before & kept & ~itself
        pair_mask[:, length:] = False  # only a query itself attends to it
        pair_mask |= itself & (np.arange(total) >= length)
        pair_mask[:, 0] = True
        return View(read_at=length + np.arange(count), pair_mask=pair_mask, queries=predicted)
