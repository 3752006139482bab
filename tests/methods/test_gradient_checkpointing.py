"""Activations computed again instead of kept: the same training in less memory."""

from __future__ import annotations

import pytest
import torch

from tartan.errors import UserError
from tartan.methods.measuring import peak_bytes
from tartan.runs.prepare import enabled_stages, prepare
from tests.core.steps import take_step
from tests.in_process import config_of, recorded_run, same, toy

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("weighting", ["meta", "meta_examples"])
def test_a_run_is_the_same_bit_for_bit(weighting, data_dir, cache_dir, tmp_path):
    options = toy(data_dir, cache_dir, "meta_tartan", f"weighting={weighting}")
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


def test_images_are_refused_in_one_line(cache_dir):
    config = config_of(
        ["+experiment=digits_mt", f"cache_dir={cache_dir}", "gradient_checkpointing=true"]
    )
    with pytest.raises(UserError, match="no gradient checkpointing; use a smaller micro_batch"):
        prepare(config, enabled_stages(config))
