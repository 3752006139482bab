"""The progress bar's figures, and when they are read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import RichProgressBar

from src.methods.progress_bar import READ_EVERY, StageProgressBar


@pytest.fixture
def read(monkeypatch):
    """What the bar shows at a step on a device, and how often Lightning was asked for metrics."""
    asked = []

    def metrics(self, trainer, module):
        asked.append(trainer.global_step)
        return {
            "v_num": 3,
            "loss/end_task": 1.234,
            "weight/end_task": 0.4,
            "loss/dapt": 2.0,
            "dev_macro_f1": 0.5,
        }

    monkeypatch.setattr(RichProgressBar, "get_metrics", metrics)
    bar = StageProgressBar("joint")

    def call(step, device):
        trainer = SimpleNamespace(global_step=step, training=True)
        return bar.get_metrics(trainer, SimpleNamespace(device=torch.device(device)))

    return call, asked


def test_losses_and_weights_are_joined(read):
    call, _ = read
    assert call(1, "cpu") == {"end_task": "1.23 (0.40)", "dapt": "2.00", "dev_macro_f1": 0.5}


@pytest.mark.parametrize(("device", "times"), [("cpu", 3 * READ_EVERY), ("cuda", 4)])
def test_a_gpu_is_asked_now_and_then(device, times, read):
    call, asked = read
    shown = [call(step, device) for step in range(1, 3 * READ_EVERY + 1)]
    assert len(asked) == times
    assert all(figures == shown[0] for figures in shown)
