"""Classification of texts from the first token's state: the end task's objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tartan.core.task import Batch
from tartan.encoders.heads import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import Row, TextClassifier
from tartan.objectives.class_weights import ClassWeights
from tartan.objectives.layout import Layout, labelled_batch
from tartan.settings import Below1, Checked


@dataclass(frozen=True)
class Classification(Checked, TextClassifier):
    """Classifies texts; a unit is an example.

    Attributes:
        classes: number of labels.
        dropout: dropout probability of the head (paper: 0.1 or 0.3).
        class_weights: see `Supervised`.
        label_smoothing: see `Supervised`.
    """

    classes: int
    dropout: Below1 = 0.1
    class_weights: ClassWeights = None
    label_smoothing: Below1 = 0.0

    def new_head(self, encoder: TextEncoder) -> ClassifierHead:
        return ClassifierHead(encoder.hidden_size, self.classes, self.dropout)

    def batch(self, layout: Layout, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        token_ids = [np.asarray(row["input_ids"], dtype=np.int64) for row in rows]
        names = {"label": "labels", "unseen": "unseen"}
        columns = {new: [row[old] for row in rows] for old, new in names.items() if old in rows[0]}
        return labelled_batch(layout, rows, token_ids, **columns)
