"""How characteristic a token is of its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from src.configuration.options import Below1, Checked, Count
from src.encoders.classifier_head import ClassifierHead
from src.encoders.text_encoder import TextEncoder
from src.objectives.base import Row
from src.objectives.composed.output.base import Output, Targets
from src.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class TfIdf(Checked, Output):
    """Predict the weight of each chosen token in its text, with squared error.

    The weight is `ln(1 + tf idf)`: `tf` counts the token in the text, and
    `idf = 1 + ln((1 + N) / (1 + df))` with the `df` of `N` texts that hold it.

    Attributes:
        texts: of a larger source so many are counted, evenly spaced.
        dropout: of the head.
        idf: of each piece of the vocabulary, `(size,)`; None before `fitted`.
    """

    predicts_tokens = True
    texts: Count = 20_000
    dropout: Below1 = 0.1
    idf: np.ndarray | None = field(default=None, init=False, repr=False, compare=False)

    def fitted(self, rows: Sequence[Row], vocabulary: Vocabulary) -> Self:
        counted = min(len(rows), self.texts)
        holding = np.zeros(vocabulary.size)
        for number in range(counted):
            tokens = rows[number * len(rows) // counted]["input_ids"]
            holding[np.unique(np.asarray(tokens, dtype=np.int64))] += 1
        fitted = replace(self)
        # not an argument: a checkpoint names an objective by its arguments, which are plain
        object.__setattr__(fitted, "idf", 1 + np.log((1 + counted) / (1 + holding)))
        return fitted

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        assert self.idf is not None, "fitted where the texts are read"
        positions = np.flatnonzero(chosen)
        held, own, counts = np.unique(tokens, return_inverse=True, return_counts=True)
        weights = np.log1p(counts * self.idf[held])[own]
        return positions, weights[positions].astype(np.float32)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, 1, self.dropout)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        predicted = head(features).squeeze(-1).float()
        return F.mse_loss(predicted, targets.float(), reduction="none")
