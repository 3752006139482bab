"""The base of outputs that are read from the first token's state."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from src.configuration.options import Below1, Checked
from src.objectives.composed.output.base import Output


@dataclass(frozen=True)
class FirstToken(Checked, Output):
    """Predict one of some classes, with a classification head of its own.

    Attributes:
        dropout: of the head.
    """

    needs_both_sides = True
    dropout: Below1 = 0.1

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(head(features), targets, reduction="none")
