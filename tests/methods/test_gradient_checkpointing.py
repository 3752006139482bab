"""Activations computed again instead of kept: the same training in less memory."""

from __future__ import annotations

import pytest
import torch

from benchmarks.steps import peak_bytes
from tests.core.steps import take_step
from tests.in_process import recorded_run, same, toy

pytestmark = pytest.mark.slow


def test_a_run_is_the_same_bit_for_bit(data_dir, cache_dir, tmp_path):
    options = toy(data_dir, cache_dir, "meta_tartan", "weighting=meta_examples")
    kept, again = (
        recorded_run(
            [*options, "micro_batch_size=3", f"gradient_checkpointing={how}"], tmp_path / how
        )
        for how in ("false", "true")
    )
    assert same(kept.ends["joint"], again.ends["joint"])


def test_a_deep_body_takes_less_memory(data_dir, cache_dir, tmp_path):
    def peak(how):
        options = toy(data_dir, cache_dir, "mt_tartan", "encoder.layers=12")
        run = recorded_run(
            [*options, f"gradient_checkpointing={how}", "max_steps=1"], tmp_path / how
        )
        module, batch = run.modules["joint"], run.data["joint"][0]
        step = lambda: take_step(  # noqa: E731
            module.body, module.tasks, batch.tasks, module.weighting
        )
        step()
        return peak_bytes(step, torch.device("cpu"))

    assert peak("true") < 0.7 * peak("false")
