"""Peaks of memory, and what is said where it runs out."""

from __future__ import annotations

import psutil
import pytest
import torch
from omegaconf import OmegaConf

from tartan.errors import UserError
from tartan.methods.measuring import memory_advice, peak_of_device

CPU = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."


def validation_step(error):
    raise error


def training_step(error):
    raise error


@pytest.mark.parametrize(
    ("error", "step", "advice"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), training_step, "micro_batch_size=8"),
        (RuntimeError(CPU), training_step, "micro_batch_size=8"),
        (MemoryError(), validation_step, "evaluation_batch_size=32"),
    ],
)
def test_running_out_of_memory_names_the_setting_to_lower(error, step, advice):
    config = OmegaConf.create({"micro_batch_size": 16, "evaluation_batch_size": 64})
    with pytest.raises(UserError, match=advice), memory_advice(config, "micro_batch_size", "joint"):
        step(error)


def test_other_errors_pass():
    config = OmegaConf.create({"micro_batch_size": 1})
    with pytest.raises(RuntimeError, match="shapes"), memory_advice(config, "micro_batch_size", ""):
        raise RuntimeError("shapes do not fit")


def test_the_peak_of_a_process_is_no_less_than_what_it_holds():
    held = torch.ones(1 << 25)  # 128 MiB, touched
    peak = peak_of_device(torch.device("cpu"))
    assert peak >= 0.9 * psutil.Process().memory_info().rss >= 0.9 * held.nbytes
