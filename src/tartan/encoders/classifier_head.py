"""Defines the head of the paper's text classifiers."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ClassifierHead(nn.Module):
    """Dropout, dense, tanh, dropout, linear: the head of RoBERTa's and the paper's classifiers.

    Args:
        hidden_size: width of the body and of the dense layer.
        classes: number of labels.
        dropout: probability of both dropouts.
    """

    def __init__(self, hidden_size: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, classes)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits `(n, classes)` of `features` `(n, hidden_size)`."""
        hidden = torch.tanh(self.dense(self.dropout(features)))
        logits: Tensor = self.out(self.dropout(hidden))
        return logits
