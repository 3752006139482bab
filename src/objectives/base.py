"""Objectives with their head and their collation, added to `src.core.task.Objective`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from torch import nn

from src.core.task import Batch, Objective

Row = Mapping[str, Any]
"""One example: what the encoder reads, and `label` where it is labelled."""

Collate = Callable[[Sequence[Row], np.random.Generator], Batch]
"""Rows to a batch; whatever is random in it is drawn from the generator alone."""

E = TypeVar("E", contravariant=True)


class TaskObjective(Objective, Protocol[E]):
    """An objective that trains an encoder of type `E`."""

    def new_head(self, encoder: E) -> nn.Module:
        """The task's own head, on top of the encoder's body."""
        ...

    def collate(
        self,
        encoder: E,
        micro_batch_size: int,
        *,
        training: bool = True,
        packed: bool = False,
        on_cpu: bool = False,
    ) -> Collate:
        """Return the function that makes batches of rows for this encoder.

        Args:
            micro_batch_size: examples that go through the body at once, at most.
            training: False leaves out what would change the examples (augmentation).
            packed: put texts into rows without padding, where the encoder reads such rows.
            on_cpu: make micro-batches that suit a CPU: padded texts share one with those of similar
                length only. Otherwise there are as few as there can be.

        Raises:
            UserError: the encoder lacks what the objective needs.
        """
        ...
