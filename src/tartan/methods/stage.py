"""Declares the settings of a stage: which tasks train together, and for how long."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Literal

from annotated_types import Ge, Le

from tartan.core.meta_head import MetaHeadSettings
from tartan.errors import UserError
from tartan.methods.optimisation import Optimisation
from tartan.settings import Checked, Count, Natural, Positive

BatchSize = Annotated[int, Ge(1), Le(2**20)]


@dataclass
class Stage(Checked):
    """The settings of one stage (`conf/stage/`).

    Attributes:
        module: import path of the LightningModule.
        enabled: whether the stage is run at all.
        auxiliaries: which auxiliary tasks a stage that trains any takes: `domain` (DAPT), `task`
            (TAPT) or `all`.
        batch_size: examples of each task in one optimiser step [examples].
        meta_batch_size: examples of `B_val`, for the meta-gradient [examples].
        max_steps: upper bound of optimiser steps; null for none [steps].
        max_epochs: upper bound in passes over the examples that `epochs_of` names; null for none
            [epochs].
        epochs_of: whose examples make an epoch: the `end_task`'s, or those of the `largest` of the
            stage's tasks, as in the authors' code. A stage without the end task has the latter.
        evaluate_every: optimiser steps between evaluations on dev; null for once an epoch [steps].
        patience: evaluations without improvement after which the stage ends; null for never
            [evaluations].
        freeze_body: train only the heads.
        sampled: auxiliary tasks that each step samples, uniformly and without replacement, and that
            share one batch of `batch_size`; null trains all in each step, with a batch each
            [tasks].
        inner_products: the type in which inner products of gradients are accumulated.
        fresh_end_head: start the end task's head anew even if an earlier stage trained one.
        reinitialise: top layers of the body whose weights the stage draws anew [layers].
        optimisation: optimiser and schedule.
        meta_head: the meta head.
    """

    module: str
    enabled: bool = True
    auxiliaries: Literal["all", "domain", "task"] = "all"
    batch_size: BatchSize = 16
    meta_batch_size: BatchSize = 32
    max_steps: Count | None = None
    max_epochs: Positive | None = None
    epochs_of: Literal["end_task", "largest"] = "end_task"
    evaluate_every: Count | None = None
    patience: Count | None = None
    freeze_body: bool = False
    fresh_end_head: bool = False
    reinitialise: Natural = 0
    sampled: Count | None = None
    inner_products: Literal["float32", "float64"] = "float32"
    optimisation: Optimisation = field(default_factory=Optimisation)
    meta_head: MetaHeadSettings = field(default_factory=MetaHeadSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampled is not None and self.sampled > self.batch_size:
            raise UserError(f"sampled={self.sampled} needs a larger batch_size to share")
        if self.max_steps is None and self.max_epochs is None:
            raise UserError("give max_steps or max_epochs")

    def length(self, end_task: int | None, others: Sequence[int]) -> tuple[int, int]:
        """Return the optimiser steps of the stage, and those between two evaluations on dev.

        `end_task` (None: not trained) and `others` are the tasks' numbers of training examples.
        """
        examples = end_task
        if examples is None or self.epochs_of == "largest":
            examples = max([*others, end_task or 0])
        epoch_steps = math.ceil(examples / self.batch_size)
        bounds = [] if self.max_steps is None else [self.max_steps]
        if self.max_epochs is not None:
            epochs = Fraction(str(self.max_epochs))  # as it is written: 2.2 * 50 is above 110
            bounds.append(math.ceil(epochs * examples / self.batch_size))
        steps = max(1, min(bounds))
        return steps, min(steps, self.evaluate_every or epoch_steps)
