"""BERT's corruption of tokens (Devlin et al., 2019): masked, replaced at random, or kept."""

from __future__ import annotations

import numpy as np

from src.errors import UserError
from src.objectives.vocabulary import Vocabulary


def check_shares(masked: float, random: float) -> None:
    """Check the shares of chosen tokens that are masked and that are replaced at random.

    Raises:
        UserError: they sum to more than 1.
    """
    if masked + random > 1:
        raise UserError(f"masked and random must not sum to more than 1, got {masked} and {random}")


def draw_corruption(
    count: int, vocabulary: Vocabulary, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw what `corrupted` decides by: uniform in [0, 1), and random tokens, `(count,)` each."""
    return rng.random(count), rng.integers(0, vocabulary.size, count)


def corrupted(
    tokens: np.ndarray,
    chosen: np.ndarray,
    drawn: tuple[np.ndarray, np.ndarray],
    shares: tuple[float, float],
    mask_id: int,
) -> np.ndarray:
    """Return the tokens as the body sees them, `(tokens,)`.

    Args:
        tokens: as they are, `(tokens,)`.
        chosen: which of them to change, bool `(tokens,)`.
        drawn: see `draw_corruption`.
        shares: of the chosen, that are masked and that are replaced; the rest stays.
    """
    action, replacement = drawn
    masked = chosen & (action < shares[0])
    randomised = chosen & ~masked & (action < shares[0] + shares[1])
    return np.where(masked, mask_id, np.where(randomised, replacement, tokens))
