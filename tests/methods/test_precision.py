"""`precision=auto` is bf16 where the machine multiplies it."""

from __future__ import annotations

import pytest
import torch

from tartan.methods.trainer import resolve_precision


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
