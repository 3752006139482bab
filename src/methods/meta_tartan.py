"""META-TARTAN: MT-TARTAN with weights learned against the validation loss (section 3.2)."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from src.core.weighting.meta import Meta
from src.data.task_data import TaskData
from src.errors import UserError
from src.methods.module import TaskMixing


class MetaTartan(TaskMixing):
    """Joint training with task weights learned against the validation loss (Algorithm 1).

    The step itself is `src.core.weighting.meta.Meta.mix`; `TaskMixing` has batches and optimiser.

    With a weighting that needs no meta-gradient, such as `Uniform`, there is no meta head, and this
    is MT-TARTAN with that weighting.
    """

    trains_end_task = True
    trains_auxiliaries = True
    has_meta_head = True

    @classmethod
    def for_data(cls, data: TaskData, *, eta: float | None = None, **settings: Any) -> Self:
        """Return a module for `data`, whose encoder it trains in place.

        Args:
            data: labelled data, auxiliary tasks and encoder.
            eta: learning rate of the task weights' logits (the paper searches 1e-1, 5e-2, 3e-2 and
                1e-2); None takes 5e-2.
            settings: `lr` (or `optimisation`), `head_lr`, `weighting`, `tasks`, `heads`,
                `meta_head`, `stage`, `metrics`: see `TaskMixing.for_data`. Another `weighting`
                takes no `eta`.

        Raises:
            UserError: the data cannot be read, or do not fit the method.
        """
        if eta is not None and "weighting" in settings:
            raise UserError(
                "eta is that of the usual weighting; give one of them, eta or weighting"
            )
        usual = partial(Meta, eta=0.05 if eta is None else eta)
        return super().for_data(data, **{"weighting": usual, **settings})
