"""The progress bar's figures, when they are read, and where it ends."""

from __future__ import annotations

import torch
from lightning.pytorch import LightningModule, Trainer

from tartan.methods.trainer import StageProgressBar


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


def test_a_resumed_epoch_ends_at_its_total_and_lines_say_what_remains(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr("tartan.methods.trainer.SAY_EVERY_S", 0.0)

    def train(steps, resumed_from=None):
        bar = Watched("finetune")
        trainer = Trainer(
            max_steps=steps, max_epochs=-1, callbacks=[bar], logger=False, accelerator="cpu",
            enable_checkpointing=False, enable_model_summary=False, default_root_dir=tmp_path,
        )  # fmt: skip
        trainer.fit(Toy(), torch.ones(8, 1, 1), ckpt_path=resumed_from, weights_only=True)
        trainer.save_checkpoint(tmp_path / "point.ckpt")
        return bar.shown

    assert train(3) == [(1, 3), (2, 3), (3, 3)]
    lines = [line for line in capsys.readouterr().out.splitlines() if "left" in line]
    assert lines == [f"finetune: step {step} of 3, 0:00:00 left" for step in (1, 2, 3)]
    assert train(6, tmp_path / "point.ckpt") == [(4, 6), (5, 6), (6, 6)]
