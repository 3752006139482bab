"""Output that predicts the TF-IDF weights of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.configuration.options import Below1, Checked, Count
from tartan.encoders.classifier_head import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row
from tartan.objectives.composed.output.base import Output, Targets
from tartan.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class TfIdf(Checked, Output):
    """Predicts the TF-IDF weight of each chosen token in its text, with squared error.

    The weight is `ln(1 + tf idf)`, where `tf` is the token's count in the text, and
    `idf = 1 + ln((1 + N) / (1 + df))` if `df` of `N` texts hold the token.

    Attributes:
        texts: maximum number of texts for `idf`; from more, evenly spaced ones are taken [texts].
        dropout: dropout probability of the head.
        idf: `idf` of each token of the vocabulary, `(size,)`; None before `fit`.
    """

    predicts_tokens = True
    texts: Count = 20_000
    dropout: Below1 = 0.1
    idf: np.ndarray | None = field(default=None, init=False, repr=False, compare=False)

    def fit(self, rows: Sequence[Row], vocabulary: Vocabulary) -> Self:
        counted = min(len(rows), self.texts)
        holding = np.zeros(vocabulary.size)
        for number in range(counted):
            tokens = rows[number * len(rows) // counted]["input_ids"]
            holding[np.unique(np.asarray(tokens, dtype=np.int64))] += 1
        fitted = replace(self)
        # not an argument: checkpoints describe an objective by its arguments, which are plain
        object.__setattr__(fitted, "idf", 1 + np.log((1 + counted) / (1 + holding)))
        return fitted

    def targets(self, row: Row, tokens: np.ndarray, chosen: np.ndarray) -> Targets:
        assert self.idf is not None, "call fit first"
        positions = np.flatnonzero(chosen)
        distinct, inverse, counts = np.unique(tokens, return_inverse=True, return_counts=True)
        weights = np.log1p(counts * self.idf[distinct])[inverse]
        return positions, weights[positions].astype(np.float32)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, 1, self.dropout)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        predicted = head(features).squeeze(-1).float()
        return F.mse_loss(predicted, targets.float(), reduction="none")
