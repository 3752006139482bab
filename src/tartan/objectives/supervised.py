"""Base of objectives that classify examples, texts or images."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.core.task import Inputs
from tartan.objectives.class_weights import ClassWeights, weights_on_device


class Supervised:
    """Predicts `labels` with cross-entropy; a unit is an example (see `core.task.Objective`).

    With class weights `w`, the loss of a unit with label `y` is `w_y` times its cross-entropy. The
    loss of a batch is the mean of these over its `n` examples: their sum is divided by `n`, not by
    the sum of the weights. So it does not depend on how a batch is split, and its expectation is
    the weighted loss over all training examples.

    Attributes:
        class_weights: `balanced`, a list in the labels' order, or a weight for each label by name;
            None for equal ones. In training they are in index order, with mean 1 over the training
            examples (see `tartan.objectives.class_weights`).
    """

    class_weights: ClassWeights = None

    def targets(self, inputs: Inputs) -> Tensor:
        """Return the labels as indices, `(examples,)`."""
        labels: Tensor = inputs["labels"]
        return labels

    def owners(self, inputs: Inputs) -> Tensor:
        """Return each unit's example, which is the unit itself: `(examples,)`."""
        return torch.arange(len(inputs["labels"]), device=inputs["labels"].device)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each example, times its label's weight: `(examples,)`."""
        logits = head(features)
        losses = F.cross_entropy(logits, targets, reduction="none")
        if self.class_weights is None:
            return losses
        assert not isinstance(self.class_weights, str | Mapping), "resolved before training"
        # not the logits' type, nor an argument of `cross_entropy`, which wants them of that type
        dtype = torch.promote_types(logits.dtype, torch.float32)
        weights = weights_on_device(tuple(self.class_weights), logits.device, dtype)
        return losses * weights[targets]
