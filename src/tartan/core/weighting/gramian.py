"""Runs any of TorchJD's weightings that need only the inner products of the tasks' gradients."""

import importlib
import io
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tartan.core.body import gramian, products
from tartan.core.mixture import Mixed, weighted_sum
from tartan.core.step import Step
from tartan.core.weighting.base import Needs, Weighting

EXTRA = "pip install 'tartan-nlp[weightings]' (in a checkout: pip install -e '.[weightings]')"
"""How to install TorchJD and the solvers that some of its weightings need."""


class Gramian(Weighting):
    """A weighting of TorchJD, from the Gramian `G_ij = <g_i, g_j>` over the body's parameters.

    A step needs one body-sized buffer for each task, unlike with other weightings.

    Args:
        task_names: the tasks.
        torchjd: name of a class in `torchjd.aggregation` that maps a Gramian to weights.
        options: arguments of that class.
        second_batch: whether to pass `<g_i, g'_j>` instead, with `g'_j` from independently drawn
            batches (one more pass for each task), for weightings that are only unbiased with it.
    """

    def __init__(
        self,
        task_names: list[str],
        torchjd: str,
        options: Mapping[str, Any] | None = None,
        second_batch: bool = False,
    ) -> None:
        super().__init__(task_names)
        try:
            aggregation = importlib.import_module("torchjd.aggregation")
            inner: torch.nn.Module = getattr(aggregation, torchjd)(**(options or {}))
            inner(torch.eye(len(task_names)))  # solvers are imported on first use
        except ImportError as error:
            raise ImportError(f"{torchjd} needs {error.name}: {EXTRA}") from None
        if isinstance(inner, aggregation.Aggregator):
            raise ValueError(f"torchjd={torchjd} returns no weights; {torchjd}Weighting may")
        self._remembers = callable(getattr(inner, "reset", None))
        self.needs = Needs(second_batches=second_batch)
        if self._remembers:
            inner.reset()  # type: ignore[operator]
        # not a submodule: its buffers begin in the first step, and are this module's extra state
        self._inner = (inner,)

    @property
    def inner(self) -> torch.nn.Module:
        """TorchJD's object."""
        return self._inner[0]

    def mix(self, step: Step) -> Mixed:
        """Return the sum of the gradients, weighted by TorchJD's weights."""
        gradients = list(step.gradients())
        if self.needs.second_batches:
            inner_products = products(gradients, step.second_gradients())
        else:
            inner_products = gramian(gradients)
        step.seed_draws()
        return weighted_sum(gradients, self.weigh(inner_products))

    def weigh(self, gramian: Tensor) -> Tensor:
        """Return a step's weights `(tasks,)` from the Gramian `(tasks, tasks)`.

        TorchJD treats gradients as zero whose squared norms sum to less than a constant. So the
        Gramian is scaled by a power of two, which rounds nothing, to a largest entry between 1/2
        and 1. Weights are computed on the CPU, where some weightings keep their state.
        """
        small = gramian.cpu()
        if bool(small.isfinite().all()):
            _, exponent = torch.frexp(small.abs().max())
            alpha: Tensor = self.inner(torch.ldexp(small, -exponent))
            return alpha.to(gramian.device)
        # solvers raise, and memories would be lost; so weighted, the update is skipped
        return torch.full_like(gramian[0], math.nan)

    def get_extra_state(self) -> Tensor:
        """Return the state of a weighting with a memory, as the bytes of `torch.save`."""
        if not self._remembers:
            return torch.empty(0, dtype=torch.uint8)
        others = vars(torch.nn.Module()).keys() - {"_buffers"}
        state = {name: value for name, value in vars(self.inner).items() if name not in others}
        file = io.BytesIO()
        torch.save(state, file)
        return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Restore the state."""
        if isinstance(state, Tensor) and len(state):  # FSDP passes a placeholder
            file = io.BytesIO(state.cpu().numpy().tobytes())
            vars(self.inner).update(torch.load(file, map_location="cpu", weights_only=True))
