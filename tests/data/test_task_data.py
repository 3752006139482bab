"""Which batches of a task are packed, by where they are computed."""

from __future__ import annotations

import pytest
import torch

from src.encoders import text_encoder
from src.methods import MetaTartan
from src.objectives.layout import is_packed
from tests.methods.lightning import toy_data

CPU, GPU = ("cpu", "32-true"), ("gpu", "bf16-mixed")


@pytest.fixture
def gpu(monkeypatch):
    """A machine that says it has a GPU, with `varlen_attn` alone."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(text_encoder, "usable_kernels", lambda: ("varlen_attn",))


@pytest.mark.parametrize(
    ("where", "dropout", "trained", "evaluated"),
    [(CPU, 0.1, True, True), (GPU, 0.1, False, True), (GPU, 0.0, True, True)],
)
def test_training_needs_dropout_of_a_kernel_and_evaluations_none(
    gpu, data_dir, cache_dir, where, dropout, trained, evaluated
):
    data = toy_data(data_dir, cache_dir, num_workers=0)
    data.prepared.encoder.body.config.attention_probs_dropout_prob = dropout
    needs = MetaTartan.for_data(data, lr=1e-3).batch_needs
    step = data.steps(needs, *where)[0]
    parts = [p for b in (*step.tasks.values(), step.meta) for p in b.micro_batches]
    assert {is_packed(part.inputs) for part in parts} == {trained}
    for split in ("train", "dev", "test"):
        assert is_packed(data.evaluation(split, *where)[0].inputs) == evaluated


def test_nothing_is_packed_on_request(gpu, data_dir, cache_dir):
    data = toy_data(data_dir, cache_dir, num_workers=0, sizes={"packed": False})
    assert not is_packed(data.evaluation("dev", *GPU)[0].inputs)
