"""Base of outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from torch import Tensor, nn

from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row
from tartan.objectives.vocabulary import Vocabulary

Targets = tuple[np.ndarray, np.ndarray]
"""Positions in the text, ascending, and the target at each: `(n,)` both."""


@dataclass(frozen=True)
class Output(ABC):
    """Decides what is predicted from a text, by a head that all objectives of an output share.

    Attributes:
        needs_labels: whether it predicts the end task's label.
        needs_both_sides: whether it needs states that attend to both sides.
        predicts_tokens: whether it predicts tokens: then the representation decides which states
            predict them; other targets are predicted from the state at their own position.
    """

    needs_labels: ClassVar[bool] = False
    needs_both_sides: ClassVar[bool] = False
    predicts_tokens: ClassVar[bool] = False

    def fit(self, rows: Sequence[Row], vocabulary: Vocabulary) -> Self:
        """Return this output with statistics of all texts; by default it needs none.

        Args:
            rows: the tokenised texts.
            vocabulary: the encoder's vocabulary.
        """
        return self

    def arrange(
        self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> Row:
        """Rearrange a text before the transform; by default return it as it is.

        Args:
            rows: the batch, of which the rows up to `index` may be used.
            index: index of the text.
            vocabulary: the encoder's vocabulary.
            rng: the only source of randomness.
        """
        return rows[index]

    @abstractmethod
    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        """Return the targets of a text.

        Args:
            row: the text, after `arrange`.
            tokens: ids of its tokens before the transform, `(tokens,)`.
            chosen: True where the transform could change the token, bool `(tokens,)`.
        """

    @abstractmethod
    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        """Return a new head; `classes` is the number of the end task's labels."""

    @abstractmethod
    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each target, `(n,)`; `features` are the states `(n, hidden)`."""
