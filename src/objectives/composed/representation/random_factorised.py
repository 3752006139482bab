"""Positions see a random part of the others, in a random order of factorisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from src.configuration.options import Checked, Share
from src.objectives.composed.representation.base import Representation, View


@dataclass(frozen=True)
class RandomFactorised(Checked, Representation):
    """Attention over a random `kept` of all pairs, none of a position with itself.

    Over several layers a token comes back to its position through others, and it is there all along
    in the residual stream, so leaving out pairs does not hide it. As in XLNet (Yang et al., 2019),
    the predicted tokens therefore come last in a random order of factorisation, and each is
    predicted at a mask token of its own (a query), appended to the text with the predicted token's
    position. A query attends to itself, to what is not predicted, and to the predicted tokens
    earlier in the order. What is not predicted attends to no predicted token, a predicted one to
    those earlier. Of the pairs so allowed `kept` are kept, and those with the first position, which
    is never predicted, always: no position is left with nothing to attend to.

    Attributes:
        kept: share of the pairs that attend (paper's code: 0.6).
    """

    both_sides = True
    hides = True
    restricts = True
    kept: Share = 0.6

    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        count = len(predicted)
        total = length + count
        turn = np.zeros(total, dtype=np.int64)  # in the order; 0: not predicted
        turn[predicted] = 1 + rng.permutation(count)
        turn[length:] = turn[predicted]
        kept = rng.random((total, total), dtype=np.float32) < self.kept
        own = np.eye(total, dtype=bool)
        before = (turn[None, :] == 0) | (turn[None, :] < turn[:, None])
        pair_mask = before & kept & ~own
        pair_mask[:, length:] = False  # of a query nobody knows but itself
        pair_mask |= own & (np.arange(total) >= length)
        pair_mask[:, 0] = True
        return View(read_at=length + np.arange(count), pair_mask=pair_mask, queries=predicted)
