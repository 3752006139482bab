"""What a stage's training came to, and the metric by which its checkpoint is chosen."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, FiniteFloat, NonNegativeInt, Strict

from tartan.files import Plain

PERPLEXITY = "perplexity"
"""Exponential of the mean cross-entropy of held-out masked tokens."""
Count = Annotated[NonNegativeInt, Field(le=2**63 - 1)]
Amount = Annotated[FiniteFloat, Field(ge=0)]
Evaluation = Annotated[tuple[Count, float], Strict(False)]
"""A step and the dev metric after it; a tuple, for which JSON has a list."""


@dataclass(frozen=True)
class Monitor:
    """A metric by name; `mode` is the direction in which it improves, `min` or `max`."""

    name: str

    @property
    def mode(self) -> str:
        return "min" if self.name == PERPLEXITY else "max"

    def merit(self, value: float) -> float:
        """Return `value` such that higher is better; NaN is worse than any number."""
        if math.isnan(value):
            return -math.inf
        return -value if self.mode == "min" else value


class Spent(Plain):
    """The part of a stage's cost that is the same for every run of a config.

    Attributes:
        tokens: number of tokens of each task that went through the body, without padding (0 for
            images); `meta_gradient` and `meta_head` are the end task's tokens for these.
        examples: number of examples, likewise.
        flops: floating-point operations, likewise, those of heads included.
        padding_share: share of padding in the positions that went through the body.
    """

    tokens: dict[str, Count] = Field(default_factory=dict)
    examples: dict[str, Count] = Field(default_factory=dict)
    flops: dict[str, Count | Amount] = Field(default_factory=dict)
    padding_share: Amount | None = None


class Measured(Plain):
    """The part of a stage's cost that depends on the machine.

    Attributes:
        seconds: wall time of the stage's training and evaluations [s].
        peak_memory_bytes: of the device, or on a CPU of the process; of several the highest.
        processes: number of processes at the end of the stage.
    """

    seconds: Amount
    peak_memory_bytes: Count | None = None
    processes: Count = 1


class StageResult(Plain):
    """A stage that was trained.

    Attributes:
        steps: number of optimiser steps taken.
        best_step: the step whose weights were kept.
        skipped: number of updates that were skipped because a number was not finite.
        final_task_weights: by task; empty where one task was trained alone.
        evaluations: the dev metric after a step, in order; empty without an evaluation.
    """

    name: str
    steps: Count
    best_step: Count | None = None
    skipped: Count = 0
    cost: Spent = Spent()
    measured: Measured
    final_task_weights: dict[str, float] = Field(default_factory=dict)
    evaluations: list[Evaluation] = Field(default_factory=list)

    @property
    def flops(self) -> float | None:
        """Floating-point operations of the training passes; None if they were not counted."""
        return float(sum(self.cost.flops.values())) if self.cost.flops else None

    @property
    def seconds(self) -> float:
        return self.measured.seconds
