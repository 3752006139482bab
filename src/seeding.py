"""Randomness as a function of names: the same (seed, stage, task, step, ...) gives the same draws.

No generator state is carried from step to step, so a run that is cut and continued, or one that
loads its data in another process, draws what an undisturbed one draws.
"""

from __future__ import annotations

import hashlib

import numpy as np


def seed_for(seed: int, *names: str | int) -> int:
    """A 63-bit seed derived from `seed` and any number of names (stage, task, step, ...).

    Stable across processes, machines and Python versions (unlike `hash`).
    """
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator_for(seed: int, *names: str | int) -> np.random.Generator:
    """A NumPy generator seeded by `seed_for(seed, *names)`."""
    return np.random.Generator(np.random.Philox(seed_for(seed, *names)))
