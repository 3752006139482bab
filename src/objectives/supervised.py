"""What classification of texts and of images have in common: a label for each example."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from src.core.task import Inputs


class Supervised:
    """Cross-entropy over `labels`; a unit is an example (see `src.core.task.Objective`)."""

    def targets(self, inputs: Inputs) -> Tensor:
        """Labels as indices, `(examples,)`."""
        labels: Tensor = inputs["labels"]
        return labels

    def owners(self, inputs: Inputs) -> Tensor:
        """Each unit belongs to itself: `(examples,)`."""
        return torch.arange(len(inputs["labels"]), device=inputs["labels"].device)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of each example."""
        return F.cross_entropy(head(features), targets, reduction="none")
