"""The base of representations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np


def no_positions() -> np.ndarray:
    """An empty list of positions."""
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class View:
    """The way of a text of `length` tokens through the body.

    Attributes:
        read_at: the position whose state predicts each predicted token, `(predicted,)`.
        pair_mask: row by column, which positions a position attends to, bool
            `(length + queries, length + queries)`; None for all to all.
        queries: for each mask token that is appended, the position in the text that it stands at,
            `(queries,)`.
    """

    read_at: np.ndarray
    pair_mask: np.ndarray | None = None
    queries: np.ndarray = field(default_factory=no_positions)


@dataclass(frozen=True)
class Representation(ABC):
    """Decides which positions a position sees, and from where a token is predicted.

    Attributes:
        both_sides: whether a position sees text on both sides of it.
        hides: whether no predicted token reaches its own prediction, whatever the transform.
        restricts: whether its views say which positions attend to which.
    """

    both_sides: ClassVar[bool]
    hides: ClassVar[bool]
    restricts: ClassVar[bool]

    @abstractmethod
    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        """The way of one text through the body.

        Args:
            length: tokens, special ones included.
            predicted: positions of the tokens that are predicted, ascending, never the first nor
                the last position; empty where no token is predicted.
            rng: the only source of randomness.
        """
