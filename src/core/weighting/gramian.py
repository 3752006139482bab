"""Any weighting of the field that needs only the inner products of the tasks' gradients."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from src.core.weighting.base import Observation, Weighting
from src.errors import UserError

EXTRA = "pip install 'tartan[weightings]' (in a checkout: pip install -e '.[weightings]')"
"""What provides TorchJD and the solvers that some of its weightings need."""


class Gramian(Weighting):
    """A weighting of TorchJD, from the Gramian `G_ij = <g_i, g_j>` over the body's parameters.

    All tasks' gradients are held until the Gramian is known, so a step's memory grows by one
    body-sized buffer a task, unlike that of the other weightings.

    Args:
        task_names: the tasks.
        torchjd: name of a class in `torchjd.aggregation` that maps a Gramian to weights.
        options: its arguments.

    Raises:
        UserError: TorchJD, or a solver it needs, is not installed; or its class or arguments do
            not exist.
    """

    needs_gramian = True

    def __init__(
        self, task_names: list[str], torchjd: str, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(task_names)
        try:
            aggregation = importlib.import_module("torchjd.aggregation")
            self.inner: torch.nn.Module = getattr(aggregation, torchjd)(**(options or {}))
            self.inner(torch.eye(len(task_names)))  # solvers are imported on first use
        except ImportError as error:
            raise UserError(f"weighting {torchjd} needs {error.name}: {EXTRA}") from error
        except (AttributeError, TypeError) as error:
            raise UserError(f"weighting.torchjd={torchjd}: {error}") from error
        reset = getattr(self.inner, "reset", None)
        if callable(reset):
            reset()
        self._alpha = torch.empty(0)

    def weigh(self, gramian: Tensor) -> None:
        """Decide the weights of this step from the Gramian, shape `(tasks, tasks)`."""
        self._alpha = self.inner(gramian)

    def factor(self, index: int, observation: Observation) -> Tensor:
        return self._alpha[index]

    def finish(self) -> tuple[Tensor, Tensor]:
        return self._alpha, torch.ones_like(self._alpha[0])
