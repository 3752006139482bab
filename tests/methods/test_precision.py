"""`auto` is bf16 where the processor multiplies it, float32 elsewhere."""

from __future__ import annotations

import pytest
import torch

from tartan.methods.precision import resolve_precision


@pytest.fixture
def machine(monkeypatch):
    """Make torch describe a machine; no GPU is touched."""

    def describe(*, gpu: bool, gpu_bf16: bool = False, cpu: dict | None = None):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *args, **kwargs: gpu_bf16)
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: cpu or {}, raising=False)

    return describe


@pytest.mark.parametrize("precision", ["bf16-mixed", "32-true", "64-true"])
def test_a_precision_that_is_named_is_taken(precision):
    assert resolve_precision(precision, "auto") == precision


@pytest.mark.parametrize("accelerator", ["auto", "gpu", "cuda"])
def test_auto_on_a_gpu_is_bf16_where_it_has_it(machine, accelerator):
    machine(gpu=True, gpu_bf16=True)
    assert resolve_precision("auto", accelerator) == "bf16-mixed"
    machine(gpu=True, gpu_bf16=False, cpu={"avx512_bf16": True})
    assert resolve_precision("auto", accelerator) == "32-true"


@pytest.mark.parametrize("accelerator", ["auto", "cpu"])
@pytest.mark.parametrize("capability", ["avx512_bf16", "amx_bf16", "bf16"])
def test_auto_on_a_cpu_is_bf16_where_it_multiplies_it(machine, accelerator, capability):
    machine(gpu=False, cpu={capability: True, "avx2": True})
    assert resolve_precision("auto", accelerator) == "bf16-mixed"
    machine(gpu=False, cpu={capability: False, "avx2": True})
    assert resolve_precision("auto", accelerator) == "32-true"


def test_auto_on_the_cpu_of_a_machine_with_a_gpu_asks_the_cpu(machine):
    machine(gpu=True, gpu_bf16=True, cpu={})
    assert resolve_precision("auto", "cpu") == "32-true"


def test_an_older_torch_that_cannot_tell_trains_in_float32(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert resolve_precision("auto", "cpu") == "32-true"
