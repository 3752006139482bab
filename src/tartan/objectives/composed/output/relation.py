"""Base of outputs that predict the relation between two segments of a text."""

from __future__ import annotations

import numpy as np
from torch import nn

from tartan.encoders.classifier_head import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row
from tartan.objectives.composed.output.base import Targets
from tartan.objectives.composed.output.first_token import FirstToken
from tartan.objectives.composed.output.segments import RELATION
from tartan.objectives.composed.representation.base import no_positions


class Relation(FirstToken):
    """Predicts one of two relations from the first token's state."""

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        if row[RELATION] < 0:
            return no_positions(), no_positions()
        return np.zeros(1, dtype=np.int64), np.asarray([row[RELATION]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, 2, self.dropout)
