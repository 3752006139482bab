"""The base of outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from torch import Tensor, nn

from src.encoders.text_encoder import TextEncoder
from src.objectives.base import Row
from src.objectives.vocabulary import Vocabulary

Targets = tuple[np.ndarray, np.ndarray]
"""Positions in the text, ascending, and what is predicted at each: `(n,)` both."""


@dataclass(frozen=True)
class Output(ABC):
    """Decides what is predicted of a text, by a head that all objectives of an output share.

    Attributes:
        needs_labels: whether it predicts the end task's label.
        needs_both_sides: whether it reads states that must have seen both sides.
        predicts_tokens: whether it predicts the tokens at its positions: these are to be read where
            the representation hides them, others at the position itself.
    """

    needs_labels: ClassVar[bool] = False
    needs_both_sides: ClassVar[bool] = False
    predicts_tokens: ClassVar[bool] = False

    def fitted(self, rows: Sequence[Row], vocabulary: Vocabulary) -> Self:
        """Return this output with what it has to know of all texts; by default nothing.

        Args:
            rows: the texts, tokenised.
            vocabulary: the encoder's.
        """
        return self

    def arranged(
        self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> Row:
        """Return a text of a batch as the transform gets it; by default as it is.

        Args:
            rows: the batch, of which those up to `index` may be used.
            index: of the text.
            vocabulary: the encoder's.
            rng: the only source of randomness.
        """
        return rows[index]

    @abstractmethod
    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        """Return what to predict of a text.

        Args:
            row: the text, arranged.
            tokens: of the text, before the transform, `(tokens,)`.
            chosen: those that the transform could change, bool `(tokens,)`.
        """

    @abstractmethod
    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        """Its head; `classes` are the end task's."""

    @abstractmethod
    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Each target's loss, `(n,)`, from the states it is read from, `(n, hidden)`."""
