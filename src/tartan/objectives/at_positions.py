"""Base of objectives that predict something at chosen positions of texts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tartan.core.task import Inputs
from tartan.objectives.hidden_states import hidden_states
from tartan.objectives.layout import spans


class AtPositions:
    """Predicts `targets` at `positions` of a micro-batch; a unit is one position (see `Objective`).

    The inputs `positions` and `targets` are `(n,)` both; positions are indices into all positions
    of the micro-batch, flattened.
    """

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return the hidden states at the positions: `(n, hidden)`."""
        return hidden_states(body, inputs).flatten(0, 1).index_select(0, inputs["positions"])

    def targets(self, inputs: Inputs) -> Tensor:
        """Return the targets: `(n,)`."""
        targets: Tensor = inputs["targets"]
        return targets

    def owners(self, inputs: Inputs) -> Tensor:
        """Return the index of the text to which each position belongs: `(n,)`."""
        positions: Tensor = inputs["positions"]
        return torch.bucketize(positions, spans(inputs)[0], right=True) - 1
