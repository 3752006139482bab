"""Classification with a label for each example, of texts and of images."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from src.core.task import Inputs
from src.objectives.class_weights import ClassWeights, on_device


class Supervised:
    """Cross-entropy over `labels`; a unit is an example (see `src.core.task.Objective`).

    With class weights `w`, a unit's loss is `w_y` times its cross-entropy, and a batch's the sum of
    these over its `n` examples divided by `n`, not by the sum of the weights: it stays a mean over
    units, which does not depend on how a batch is split, and its expectation is the weighted loss
    over all training examples.

    Attributes:
        class_weights: `balanced`, a list in the labels' order, or a weight for each label by name;
            None for equal ones. A module has them in index order, of mean 1 over the training
            examples (see `src.objectives.class_weights`).
    """

    class_weights: ClassWeights = None

    def targets(self, inputs: Inputs) -> Tensor:
        """Labels as indices, `(examples,)`."""
        labels: Tensor = inputs["labels"]
        return labels

    def owners(self, inputs: Inputs) -> Tensor:
        """Each unit belongs to itself: `(examples,)`."""
        return torch.arange(len(inputs["labels"]), device=inputs["labels"].device)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of each example, times its label's weight."""
        logits = head(features)
        weights = None
        if self.class_weights is not None:
            assert not isinstance(self.class_weights, str | Mapping), "scaled to the labels"
            weights = on_device(tuple(self.class_weights), logits.device, logits.dtype)
        return F.cross_entropy(logits, targets, weight=weights, reduction="none")
