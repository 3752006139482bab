"""META-TARTAN with learned weights of single auxiliary examples (the paper's future work)."""

from __future__ import annotations

import math

from torch import Tensor

from tartan.core.mixture import Mixed
from tartan.core.step import Step
from tartan.core.weighting.base import Needs
from tartan.core.weighting.meta import Meta, Order
from tartan.settings import NonNegative, Part, Temperature, checked


class MetaExamples(Meta):
    """Learns task weights, and weights every example of each auxiliary batch.

    An example's weight is `softmax(z / temperature)` over the batch, scaled to mean 1 over its
    units, where `z_j = <g_meta, g_j>` divided by the root mean square of the batch's: examples
    whose gradient points along the meta-gradient count more, and multiplying a task's loss by a
    constant changes nothing. The task's gradient, and so its cosine and its task weight, are those
    of the weighted batch; its head gets the gradient of the plain one. At an infinite temperature
    this is `Meta`.

    Args:
        task_names: the tasks, the end task first.
        eta: see `Meta`.
        order: see `Meta`.
        start: see `Meta`.
        temperature: the higher, the more equal the examples' weights.
    """

    needs = Needs(meta_gradient=True, example_weights=True)

    @checked
    def __init__(
        self,
        task_names: list[str],
        eta: NonNegative = 0.05,
        order: Order = "update_then_step",
        start: Part | None = None,
        temperature: Temperature = 1.0,
    ) -> None:
        super().__init__(task_names, eta, order, start)
        self.temperature = temperature

    def mix(self, step: Step) -> Mixed:
        """Take `Meta`'s step on the weighted batches."""
        return super().mix(step.weighing_examples(self.weigh_examples))

    def weigh_examples(self, alignments: Tensor, units: Tensor) -> Tensor:
        """Return weights of a batch's examples, shape `(examples,)`, whose mean over units is 1.

        They are equal if all alignments are zero. An example without units (a text without a masked
        token) gets weight 0.

        Args:
            alignments: `<g_meta, g_j>` of each example's mean loss, shape `(examples,)`.
            units: number of units of each example, shape `(examples,)`.
        """
        present = units > 0
        scale = (alignments.square().sum() / present.sum().clamp(min=1)).sqrt()
        # added where it is zero only: the scale of a gradient is not known beforehand
        standard = alignments / (scale + (scale == 0).to(scale.dtype))
        weights = (standard / self.temperature).masked_fill(~present, -math.inf).softmax(dim=0)
        return weights * (units.sum() / (weights * units).sum())
