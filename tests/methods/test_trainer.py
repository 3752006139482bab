"""The Trainer's bar and precision, and what is said where memory runs out."""

from __future__ import annotations

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer

from tartan.errors import UserError
from tartan.methods.stage_outcome import memory_advice
from tartan.methods.trainer import StageProgressBar, resolve_precision


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
