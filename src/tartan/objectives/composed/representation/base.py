"""Base of representations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np


def no_positions() -> np.ndarray:
    """Return an empty array of positions."""
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class View:
    """How the body reads a text of `length` tokens.

    Attributes:
        read_at: for each token to predict, the position whose state predicts it, `(predicted,)`.
        pair_mask: True where the position of the row attends to that of the column, bool
            `(length + queries, length + queries)`; None where all attend to all.
        queries: for each mask token to append, the position in the text that it stands for,
            `(queries,)`.
    """

    read_at: np.ndarray
    pair_mask: np.ndarray | None = None
    queries: np.ndarray = field(default_factory=no_positions)


@dataclass(frozen=True)
class Representation(ABC):
    """Decides which positions attend to which, and which position's state predicts a token.

    Attributes:
        sees_both_sides: whether positions attend to the text on both sides of them.
        restricts_attention: whether its views have a `pair_mask`.
    """

    sees_both_sides: ClassVar[bool]
    restricts_attention: ClassVar[bool]

    @abstractmethod
    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        """Return how the body reads a text.

        Args:
            length: number of tokens, special ones included.
            predicted: positions of the tokens to predict, ascending, without the first and the last
                position; empty where no tokens are predicted.
            rng: the only source of randomness.
        """
