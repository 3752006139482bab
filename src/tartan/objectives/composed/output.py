"""Outputs, which decide what is predicted from a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.encoders.heads import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row, token_losses
from tartan.settings import Below1, Checked

Targets = tuple[np.ndarray, np.ndarray]
"""Positions in the text, ascending, and the target at each: `(n,)` both."""


@dataclass(frozen=True)
class Output(ABC):
    """Decides what is predicted from a text, by a head that all objectives of an output share."""

    needs_labels: ClassVar[bool] = False  # whether it predicts the end task's label
    needs_both_sides: ClassVar[bool] = False  # whether states must attend to both sides
    predicts_tokens: ClassVar[bool] = False

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
class EndLabel(Checked, Output):
    """Predicts the end task's label of a transformed text, with a head apart from the task's.

    Attributes:
        dropout: dropout probability of the head.
    """

    needs_labels = True
    needs_both_sides = True
    dropout: Below1 = 0.1

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        return np.zeros(1, dtype=np.int64), np.asarray([row["label"]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, classes, self.dropout)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy at the first tokens' states, `(n,)`."""
        return F.cross_entropy(head(features), targets, reduction="none")
