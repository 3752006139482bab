"""Declares the interface of objectives: `tartan.core.task.Objective` with a head and a collator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from torch import nn

from tartan.core.task import Batch, Objective

Row = Mapping[str, Any]
"""One example: the encoder's inputs, and `label` where it is labelled."""

Collate = Callable[[Sequence[Row], np.random.Generator], Batch]
"""Makes a batch of rows; the generator is the only source of randomness."""

E = TypeVar("E", contravariant=True)


class TaskObjective(Objective, Protocol[E]):
    """An objective that trains an encoder of type `E`."""

    def new_head(self, encoder: E) -> nn.Module:
        """Return a new head for the task, to go on top of the encoder's body."""
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
            encoder: the encoder.
            micro_batch_size: maximum number of examples that go through the body at once.
            training: whether to augment examples.
            packed: whether to pack texts into rows without padding, where the encoder supports it.
            on_cpu: whether to split padded texts for a CPU, into micro-batches of similar lengths;
                otherwise there are as few micro-batches as possible.

        Raises:
            UserError: the encoder lacks what the objective needs.
        """
        ...
