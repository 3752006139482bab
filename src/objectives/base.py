"""What an objective on text adds to `src.core.task.Objective`: its head and its collation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from torch import nn

from src.core.task import Batch, Objective
from src.encoders.encoder import Encoder

Row = Mapping[str, Any]
"""One tokenised example: `input_ids`, and `label` where it is labelled."""

Collate = Callable[[Sequence[Row], np.random.Generator], Batch]
"""Rows to a batch; whatever is random in it is drawn from the generator alone."""


class TextObjective(Objective, Protocol):
    """An objective that trains a text encoder."""

    def new_head(self, encoder: Encoder) -> nn.Module:
        """The task's own head, on top of the encoder's body."""
        ...

    def collate(self, encoder: Encoder, micro_batch_size: int) -> Collate:
        """How rows become batches for this encoder.

        Raises:
            UserError: the encoder's tokenizer lacks what the objective needs.
        """
        ...
