"""Derives random seeds from names: the same (seed, stage, task, step, ...) gives the same draws."""

import hashlib

import numpy as np
import torch


def seed_for(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed, the same in all processes and versions of Python, unlike `hash`."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator_for(seed: int, *names: str | int) -> np.random.Generator:
    """Return a NumPy generator seeded by `seed_for(seed, *names)`."""
    return np.random.Generator(np.random.Philox(seed_for(seed, *names)))


def seed_device(seed: int, device: torch.device) -> None:
    """Seed torch's generators of the CPU and of `device`, faster than `torch.manual_seed`."""
    torch.default_generator.manual_seed(seed)
    seed_its_own = getattr(getattr(torch, device.type, None), "manual_seed", None)
    if seed_its_own is not None:  # of torch.cuda, torch.mps, torch.xpu
        seed_its_own(seed)
