"""Output that predicts the end task's label of a transformed text."""

from __future__ import annotations

import numpy as np
from torch import nn

from tartan.encoders.classifier_head import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row
from tartan.objectives.composed.output.base import Targets
from tartan.objectives.composed.output.first_token import FirstToken


class EndLabel(FirstToken):
    """Predicts the label from the first token's state, with a head apart from the end task's."""

    needs_labels = True

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        return np.zeros(1, dtype=np.int64), np.asarray([row["label"]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, classes, self.dropout)
