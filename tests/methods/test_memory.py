"""Peaks of memory, and what is said where it runs out."""

from __future__ import annotations

import pytest
import torch

from tartan.errors import UserError
from tartan.methods.fit import memory_advice

CPU = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(CPU), MemoryError()]
)
def test_running_out_of_memory_says_what_to_lower_and_other_errors_pass(error):
    advice = r"stage joint; lower micro_batch_size"
    with pytest.raises(UserError, match=advice), memory_advice("stage joint"):
        raise error
    with pytest.raises(RuntimeError, match="shapes"), memory_advice(""):
        raise RuntimeError("shapes do not fit")
