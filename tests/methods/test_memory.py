"""Running out of memory names the setting to lower, and to what."""

from __future__ import annotations

import pytest
import torch
from omegaconf import OmegaConf

import tartan.runs.run
from tartan.errors import UserError
from tartan.methods.memory import memory_advice
from tartan.methods.module import TaskMixing
from tests.in_process import config_of, toy

CPU = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."


def raised(error, micro_batch_size=16, gradient_checkpointing=False):
    config = OmegaConf.create(
        {
            "micro_batch_size": micro_batch_size,
            "gradient_checkpointing": gradient_checkpointing,
        }
    )
    with (
        pytest.raises(UserError) as caught,
        memory_advice(config, "micro_batch_size", "stage joint"),
    ):
        raise error
    return str(caught.value)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(CPU), MemoryError()]
)
def test_every_way_of_running_out_is_recognised(error):
    assert raised(error) == "out of memory in stage joint; use micro_batch_size=8 (it is 16)"


def test_other_errors_pass():
    config = OmegaConf.create({"micro_batch_size": 1})
    with pytest.raises(RuntimeError, match="shapes"), memory_advice(config, "micro_batch_size", ""):
        raise RuntimeError("shapes do not fit")


@pytest.mark.parametrize(
    ("method", "option"),
    [
        ("training_step", "micro_batch_size=8"),
        ("validation_step", "evaluation_batch_size=32"),
        ("test_step", "evaluation_batch_size=32"),
    ],
)
def test_a_run_that_runs_out_says_so(method, option, data_dir, cache_dir, tmp_path, monkeypatch):
    def greedy(self, *args):
        torch.empty(1 << 50)

    monkeypatch.setattr(TaskMixing, method, greedy)
    with pytest.raises(UserError, match=f"out of memory in .*; use {option} "):
        tartan.runs.run.run_experiment(config_of(toy(data_dir, cache_dir, "finetune")), tmp_path)
