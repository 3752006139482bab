"""The Trainer's bar and precision, and what is said where memory runs out."""

from __future__ import annotations

import pytest
import torch

from tartan.errors import UserError
from tartan.methods.stage_outcome import memory_advice
from tartan.methods.trainer import resolve_precision

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


@pytest.mark.parametrize(
    ("accelerator", "on_gpu", "on_cpu", "precision"),
    [
        ("auto", True, {}, "bf16-mixed"),
        ("auto", False, {"avx512_bf16": True}, "32-true"),
        ("cpu", True, {}, "32-true"),
        ("cpu", False, {"amx_bf16": True}, "bf16-mixed"),
    ],
)
def test_auto_asks_the_processor_that_is_used(accelerator, on_gpu, on_cpu, precision, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda emulated: on_gpu)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: on_cpu, raising=False)
    assert resolve_precision("auto", accelerator) == precision
    assert resolve_precision("64-true", accelerator) == "64-true"
