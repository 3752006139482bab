"""Says which setting to lower, and to what, when memory runs out."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from omegaconf import DictConfig

from tartan.errors import UserError

_ON_THE_CPU = ("can't allocate memory", "not enough memory")
"""Parts of the messages of torch's CPU allocator, which has no exception of its own."""


@contextmanager
def memory_advice(config: DictConfig, option: str, where: str) -> Iterator[None]:
    """Turn running out of memory inside of the `with` block into a `UserError` with advice.

    Args:
        config: the run's config.
        option: the option that bounds the memory of what is running.
        where: words for what is running.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        out_of_memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not out_of_memory and not any(phrase in str(error) for phrase in _ON_THE_CPU):
            raise
        frames = traceback.walk_tb(error.__traceback__)
        if any(frame.f_code.co_name == "validation_step" for frame, _ in frames):
            option = "evaluation_batch_size"  # an evaluation during training
        value, advice = int(config[option]), "gradient_checkpointing=true or a smaller max_length"
        if value > 1:
            advice = f"{option}={value // 2} (it is {value})"
        raise UserError(f"out of memory in {where}; use {advice}") from error
