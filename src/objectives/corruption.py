"""Corrupts tokens as BERT does (Devlin et al., 2019): masks, replaces at random, or keeps them."""

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
    """Draw the random numbers for `corrupt`.

    Returns:
        Uniform numbers in [0, 1) and random tokens, `(count,)` each.
    """
    return rng.random(count), rng.integers(0, vocabulary.size, count)


def corrupt(
    tokens: np.ndarray,
    chosen: np.ndarray,
    drawn: tuple[np.ndarray, np.ndarray],
    shares: tuple[float, float],
    mask_id: int,
) -> np.ndarray:
    """Return the corrupted tokens, `(tokens,)`.

    Args:
        tokens: the original tokens, `(tokens,)`.
        chosen: True where a token may be changed, bool `(tokens,)`.
        drawn: random numbers of `draw_corruption`.
        shares: shares of the chosen tokens that are masked and that are replaced at random; the
            others are kept.
        mask_id: id of the mask token.
    """
    action, replacement = drawn
    masked = chosen & (action < shares[0])
    randomised = chosen & ~masked & (action < shares[0] + shares[1])
    return np.where(masked, mask_id, np.where(randomised, replacement, tokens))
