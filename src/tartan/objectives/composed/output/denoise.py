"""Output that predicts the original tokens."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row
from tartan.objectives.composed.output.base import Output, Targets


class Denoise(Output):
    """Predicts the chosen tokens, with a masked-LM head tied to the word embeddings."""

    predicts_tokens = True

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        positions = np.flatnonzero(chosen)
        return positions, tokens[positions]

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return encoder.new_mlm_head()

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        embeddings = body.get_input_embeddings().weight  # type: ignore[operator]
        return F.cross_entropy(head(features, embeddings), targets, reduction="none")
