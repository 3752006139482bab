"""An objective as a choice of transform, representation and output (AANG, Dery et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from src.core.task import Inputs
from src.encoders.text_encoder import TextEncoder, reads_text
from src.errors import UserError
from src.objectives.base import Collate
from src.objectives.composed.collator import ComposedCollator
from src.objectives.composed.output.base import Output
from src.objectives.composed.representation.base import Representation
from src.objectives.composed.transform.base import Transform, Vocabulary
from src.objectives.hidden_states import hidden_states


@dataclass(frozen=True)
class Composed:
    """One objective of a space (see `TaskObjective`); a unit is what the output predicts.

    Attributes:
        transform: how a text is changed before the body reads it.
        representation: how the body reads it.
        output: what is predicted.
        classes: number of the end task's labels; 0 where they are not known yet, in which case no
            head can be had.
        shared_head: objectives of the same share one head; empty for a head of its own.
    """

    transform: Transform
    representation: Representation
    output: Output
    classes: int = 0
    shared_head: str = ""

    @property
    def hides_targets(self) -> bool:
        """Whether no predicted token reaches its own prediction."""
        return self.output.predicts_tokens and self.representation.hides

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """The states that predict something: `(n, hidden)`."""
        return hidden_states(body, inputs).flatten(0, 1).index_select(0, inputs["positions"])

    def targets(self, inputs: Inputs) -> Tensor:
        """What is to be predicted: `(n,)`."""
        targets: Tensor = inputs["targets"]
        return targets

    def owners(self, inputs: Inputs) -> Tensor:
        """The text that each is predicted of: `(n,)`."""
        positions: Tensor = inputs["positions"]
        return positions.div(inputs["input_ids"].shape[1], rounding_mode="floor")

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Each prediction's loss: `(n,)`."""
        return self.output.losses(body, head, features, targets)

    def new_head(self, encoder: TextEncoder) -> nn.Module:
        return self.output.new_head(encoder, self.classes)

    def collate(
        self,
        encoder: TextEncoder,
        micro_batch_size: int,
        *,
        training: bool = True,
        part_overhead: int | None = None,
    ) -> Collate:
        reads_text(encoder, "a composed objective")
        tokenizer = encoder.tokenizer
        if tokenizer.mask_token_id is None:
            raise UserError(
                f"encoder {encoder.name} has no mask token, which composed objectives need; use "
                "auxiliary=none with method=finetune, or another encoder"
            )
        return ComposedCollator(
            transform=self.transform,
            representation=self.representation,
            output=self.output,
            vocabulary=Vocabulary(
                size=len(tokenizer),
                mask_id=int(tokenizer.mask_token_id),
                special_ids=np.asarray(sorted(tokenizer.all_special_ids), dtype=np.int64),
            ),
            pad_id=int(tokenizer.pad_token_id),
            first_position=encoder.first_position,
            micro_batch_size=micro_batch_size,
            part_overhead=part_overhead,
            max_positions=encoder.max_positions,
        )
