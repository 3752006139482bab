"""Base of outputs that are predicted from the first token's state."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from tartan.configuration.options import Below1, Checked
from tartan.objectives.composed.output.base import Output


@dataclass(frozen=True)
class FirstToken(Checked, Output):
    """Predicts a class from the first token's state, with a `ClassifierHead`.

    Attributes:
        dropout: dropout probability of the head.
    """

    needs_both_sides = True
    dropout: Below1 = 0.1

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(head(features), targets, reduction="none")
