"""Composes an objective of transform, representation and output (AANG, Dery et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.at_positions import AtPositions
from tartan.objectives.base import Collate
from tartan.objectives.composed.collator import ComposedCollator
from tartan.objectives.composed.output.base import Output
from tartan.objectives.composed.representation.base import Representation
from tartan.objectives.composed.transform.base import Transform
from tartan.objectives.layout import Layout
from tartan.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class Composed(AtPositions):
    """One objective of a space (see `TaskObjective`); a unit is a target of the output.

    Attributes:
        transform: changes a text before the body reads it.
        representation: decides which positions attend to which.
        output: decides what is predicted.
        classes: number of the end task's labels; 0 where they are not known yet, and no head can be
            made.
        shared_head: objectives with the same name here share one head; empty for a head of its own.
    """

    transform: Transform
    representation: Representation
    output: Output
    classes: int = 0
    shared_head: str = ""

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each target: `(n,)`."""
        return self.output.losses(body, head, features, targets)

    def new_head(self, encoder: TextEncoder) -> nn.Module:
        return self.output.new_head(encoder, self.classes)

    def collate(
        self,
        encoder: TextEncoder,
        micro_batch_size: int,
        *,
        training: bool = True,
        packed: bool = False,
        on_cpu: bool = False,
    ) -> Collate:
        # only the CPU's kernels take a mask of pairs in packed rows
        packed = packed and (on_cpu or not self.representation.restricts_attention)
        return ComposedCollator(
            transform=self.transform,
            representation=self.representation,
            output=self.output,
            vocabulary=Vocabulary.of(encoder, "a composed objective"),
            token_types=encoder.uses_token_types,
            layout=Layout.of(encoder, micro_batch_size, packed, on_cpu),
        )
