"""The end task's label, of a changed text or one that is read another way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from src.configuration.options import Below1, Checked
from src.encoders.classifier_head import ClassifierHead
from src.encoders.text_encoder import TextEncoder
from src.objectives.base import Row
from src.objectives.composed.output.base import Output, Targets


@dataclass(frozen=True)
class EndLabel(Checked, Output):
    """Predict the label from the first token's state, with a head apart from the end task's.

    Attributes:
        dropout: of the head.
    """

    needs_labels = True
    needs_both_sides = True
    dropout: Below1 = 0.1

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        return np.zeros(1, dtype=np.int64), np.asarray([row["label"]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, classes, self.dropout)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(head(features), targets, reduction="none")
