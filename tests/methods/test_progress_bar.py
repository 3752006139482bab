"""The progress bar's figures, and when they are read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar

from tartan.methods.progress_bar import READ_EVERY, StageProgressBar


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


class Toy(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Watched(StageProgressBar):
    """Keeps how far the bar was after each step, and of what."""

    def on_train_batch_end(self, *args):
        super().on_train_batch_end(*args)
        bar = self.train_progress_bar
        self.shown = [*getattr(self, "shown", []), (bar.completed, bar.total)]


@pytest.mark.parametrize(
    ("max_steps", "expected"),
    [
        (6, [(5, 6), (6, 6)]),
        (9, [(5, 8), (6, 8), (7, 8), (8, 8), (1, 1)]),
    ],
)
def test_a_resumed_epoch_ends_at_its_total(max_steps, expected, tmp_path):
    def train(steps, resumed_from=None):
        bar = Watched("finetune")
        trainer = Trainer(
            max_steps=steps, max_epochs=-1, callbacks=[bar], logger=False, accelerator="cpu",
            enable_checkpointing=False, enable_model_summary=False, default_root_dir=tmp_path,
        )  # fmt: skip
        trainer.fit(Toy(), torch.ones(8, 1, 1), ckpt_path=resumed_from, weights_only=True)
        trainer.save_checkpoint(tmp_path / "point.ckpt")
        return bar.shown

    assert train(4) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert train(max_steps, tmp_path / "point.ckpt") == expected


def test_without_a_terminal_a_line_says_what_remains(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tartan.methods.progress_bar.SAY_EVERY_S", 0.0)
    trainer = Trainer(
        max_steps=3, max_epochs=-1, callbacks=[StageProgressBar("joint")], logger=False,
        accelerator="cpu", enable_checkpointing=False, enable_model_summary=False,
        default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(Toy(), torch.ones(3, 1, 1))
    lines = [line for line in capsys.readouterr().out.splitlines() if "left" in line]
    assert lines == [f"joint: step {step} of 3, 0:00:00 left" for step in (1, 2, 3)]
