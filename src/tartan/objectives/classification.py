"""Classification of texts from the first token's state: the end task's objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tartan.configuration.options import Below1, Checked
from tartan.core.task import Batch, Inputs, MicroBatch
from tartan.encoders.classifier_head import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.objectives.base import Collate, Row
from tartan.objectives.class_weights import ClassWeights
from tartan.objectives.hidden_states import first_states
from tartan.objectives.layout import Layout, count_tokens_and_padding
from tartan.objectives.supervised import Supervised


@dataclass(frozen=True)
class Classification(Checked, Supervised):
    """Classifies texts; a unit is an example.

    Attributes:
        classes: number of labels.
        dropout: dropout probability of the head (paper: 0.1 or 0.3).
        class_weights: see `Supervised`.
    """

    classes: int
    dropout: Below1 = 0.1
    class_weights: ClassWeights = None

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return the first tokens' states in the last layer, `(examples, hidden)`."""
        return first_states(body, inputs)

    def new_head(self, encoder: TextEncoder) -> ClassifierHead:
        return ClassifierHead(encoder.hidden_size, self.classes, self.dropout)

    def collate(
        self,
        encoder: TextEncoder,
        micro_batch_size: int,
        *,
        training: bool = True,
        packed: bool = False,
        on_cpu: bool = False,
    ) -> Collate:
        require_text_encoder(encoder, "classifier=text")
        return ClassificationCollator(Layout.of(encoder, micro_batch_size, packed, on_cpu))


@dataclass(frozen=True)
class ClassificationCollator:
    """Splits a labelled batch into micro-batches, without randomness."""

    layout: Layout

    def __call__(self, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        token_ids = [np.asarray(row["input_ids"], dtype=np.int64) for row in rows]
        parts = []
        for part in self.layout.parts(rows, token_ids):
            members, inputs = part.members, part.inputs
            inputs["labels"] = torch.tensor([rows[i]["label"] for i in members])
            if "unseen" in rows[0]:
                inputs["unseen"] = torch.tensor([rows[i]["unseen"] for i in members])
            parts.append(MicroBatch(inputs, units=len(members), examples=len(members)))
        return Batch(parts, len(rows), *count_tokens_and_padding(parts))
