"""META-TARTAN: weights learned online against the end task's validation loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from src.core.weighting.base import Observation, Weighting
from src.errors import UserError


class Meta(Weighting):
    """`alpha = softmax(w)`, `w_i <- w_i + eta * cos(g_meta, g_i)` (paper, Algorithm 1, equation 7).

    Args:
        task_names: the tasks, the end task first.
        eta: learning rate of the logits `w` (the paper searches 1e-1, 5e-2, 3e-2, 1e-2).
        order: `update_then_step` mixes with the new weights (Algorithm 1); `step_then_update`
            mixes with the old ones and updates them afterwards (section 3.2's wording).

    The softmax is taken without holding the gradients: with `m = max(w) + eta`, which bounds every
    new logit, task `i`'s relative weight is `exp(w_i - m)` (its new `w_i`).
    """

    needs_meta_gradient = True
    logits: Tensor

    def __init__(
        self, task_names: list[str], eta: float = 0.1, order: str = "update_then_step"
    ) -> None:
        if order not in ("update_then_step", "step_then_update"):
            raise UserError(
                f"weighting.order must be update_then_step or step_then_update, got {order!r}"
            )
        if not math.isfinite(eta) or eta < 0:
            raise UserError(f"weighting.eta must be a finite number of at least 0, got {eta}")
        super().__init__(task_names)
        self.eta = eta
        self.update_first = order == "update_then_step"
        count = len(task_names)
        # Algorithm 1 starts every logit at 1 / (n + 1); any equal start gives equal weights.
        self.register_buffer("logits", torch.full((count,), 1.0 / count))
        self._new_logits: list[Tensor] = []
        self._factors: list[Tensor] = []

    def factor(self, index: int, observation: Observation) -> Tensor:
        if observation.cosine is None:
            raise ValueError("the meta weighting needs the meta-gradient's cosines")
        new = self.logits[index] + self.eta * observation.cosine.to(self.logits.dtype)
        bound = self.logits.max() + (self.eta if self.update_first else 0.0)
        factor = ((new if self.update_first else self.logits[index]) - bound).exp()
        self._new_logits.append(new)
        self._factors.append(factor)
        return factor

    def finish(self) -> Tensor:
        factors = torch.stack(self._factors)
        self.logits.copy_(torch.stack(self._new_logits))
        self._new_logits, self._factors = [], []
        return factors / factors.sum()
