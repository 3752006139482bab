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
    """Turn running out of memory into a message that says what to do.

    Args:
        config: the run's config.
        option: the option that bounds the memory of what is running.
        where: words for what is running.

    Raises:
        UserError: memory ran out inside the `with` block.
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
        raise UserError(_advice(config, option, where)) from error


def _advice(config: DictConfig, option: str, where: str) -> str:
    value = int(config[option])
    if value > 1:
        return f"out of memory in {where}; use {option}={value // 2} (it is {value})"
    if option == "micro_batch_size" and not config.gradient_checkpointing:
        return f"out of memory in {where} with {option}=1; use gradient_checkpointing=true"
    return f"out of memory in {where} with {option}=1; use a smaller task.max_length or encoder"
