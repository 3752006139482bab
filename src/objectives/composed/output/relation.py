"""Base of outputs that predict the relation between two segments of a text."""

from __future__ import annotations

import numpy as np
from torch import nn

from src.encoders.classifier_head import ClassifierHead
from src.encoders.text_encoder import TextEncoder
from src.objectives.base import Row
from src.objectives.composed.output.base import Targets
from src.objectives.composed.output.first_token import FirstToken
from src.objectives.composed.output.segments import RELATION
from src.objectives.composed.representation.base import no_positions


class Relation(FirstToken):
    """Predicts one of two relations from the first token's state."""

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        if row[RELATION] < 0:
            return no_positions(), no_positions()
        return np.zeros(1, dtype=np.int64), np.asarray([row[RELATION]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, 2, self.dropout)
