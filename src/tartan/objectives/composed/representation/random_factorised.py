"""Representation in which positions attend to random others, in a random factorisation order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tartan.configuration.options import Checked, Share
from tartan.objectives.composed.representation.base import Representation, View


@dataclass(frozen=True)
class RandomFactorised(Checked, Representation):
    """Keeps a random share of the pairs of positions that attend, and hides the predicted tokens.

    Removing pairs at random does not hide a token: over several layers it reaches its own position
    through others, and the residual stream holds it anyway. Therefore, as in XLNet (Yang et al.,
    2019), the predicted tokens come last in a random factorisation order, and each is predicted at
    a mask token of its own (a query) that is appended to the text, with the position id of the
    predicted token.

    - A query attends to itself, to tokens that are not predicted, and to predicted tokens earlier
      in the order.
    - A predicted token attends to tokens that are not predicted, and to predicted ones earlier.
    - A token that is not predicted attends to others that are not predicted.

    No token attends to itself. A share `kept` of these pairs is kept at random. All positions
    attend to the first one, which is never predicted, so that none is left with nothing to attend
    to.

    Attributes:
        kept: share of the pairs that is kept (paper's code: 0.6).
    """

    sees_both_sides = True
    restricts_attention = True
    kept: Share = 0.6

    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        count = len(predicted)
        total = length + count
        order = np.zeros(total, dtype=np.int64)  # in the factorisation; 0: not predicted
        order[predicted] = 1 + rng.permutation(count)
        order[length:] = order[predicted]
        kept = rng.random((total, total), dtype=np.float32) < self.kept
        itself = np.eye(total, dtype=bool)
        before = (order[None, :] == 0) | (order[None, :] < order[:, None])
        pair_mask = before & kept & ~itself
        pair_mask[:, length:] = False  # only a query itself attends to it
        pair_mask |= itself & (np.arange(total) >= length)
        pair_mask[:, 0] = True
        return View(read_at=length + np.arange(count), pair_mask=pair_mask, queries=predicted)
