"""How texts are split and laid out, by the option and the device."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import datasets
import lightning.pytorch as pl
import numpy as np
import pytest
import torch

from tartan import TartanData
from tartan.core.task_names import END_TASK
from tartan.data.batches import BatchNeeds, unlabelled_batch
from tartan.data.end_task import HeldOutText, Splits
from tartan.data.prepared import AuxiliaryExamples, Prepared
from tartan.data.task_data import BatchSizes, TaskData
from tartan.encoders import text_encoder
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.methods import FineTuning, MetaTartan
from tartan.objectives.classification import Classification
from tartan.objectives.layout import is_packed
from tartan.objectives.masked_lm import MaskedLM
from tests.encoders.bodies import random_body
from tests.methods.lightning import toy_data, trainer

LENGTHS = (3, 4, 60, 61, 5, 62, 3, 64, 4, 3)


def data_of(kind: str, *, packed: bool, **sizes: int) -> TaskData:
    """Ten texts, six of them short, as train, dev and test."""
    encoder = TextEncoder(kind, random_body(kind), letter_pair_tokenizer())
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, len(encoder.tokenizer), length).tolist() for length in LENGTHS]
    rows = datasets.Dataset.from_dict({"input_ids": texts, "label": [0, 1] * 5})
    prepared = Prepared(encoder, {}, None, Splits(rows, rows, rows), Classification(2))
    own = {"batch_size": 10, "meta_batch_size": 10, "micro_batch_size": 10, **sizes}
    return TaskData(prepared, BatchSizes(packed=packed, **own))


def parts_of(data: TaskData, accelerator: str):
    """The micro-batches of the first step's task, and of its `B_val`."""
    needs = BatchNeeds(stage="joint", tasks=(END_TASK,), meta=True)
    step = data.steps(needs, accelerator)[0]
    return step.tasks[END_TASK].micro_batches, step.meta_batch.micro_batches


@pytest.fixture
def gpu(monkeypatch):
    """A machine that says it has a GPU, with `varlen_attn` alone."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(text_encoder, "usable_kernels", lambda: ("varlen_attn",))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("kind", "packed"), [("bert", False), ("deberta", True)])
def test_what_is_padded_on_a_cpu_is_split_by_length_whatever_the_reason(kind, packed):
    for parts in parts_of(data_of(kind, packed=packed), "cpu"):
        assert not any(is_packed(part.inputs) for part in parts)
        widths = [part.inputs["input_ids"].shape for part in parts]
        assert widths == [(2, 8), (8, 64)]


@pytest.mark.usefixtures("gpu")
def test_elsewhere_there_are_as_few_padded_parts_as_there_can_be():
    for parts in parts_of(data_of("bert", packed=False), "cuda"):
        assert [part.inputs["input_ids"].shape for part in parts] == [(10, 64)]


def of_held_out_text(data: TaskData) -> TaskData:
    rows = data.prepared.splits.dev
    text = AuxiliaryExamples(MaskedLM(), rows, "corpus", None, "", held_out=rows)
    encoder = data.prepared.encoder
    prepared = Prepared(encoder, {"dapt": (None, text)}, None, None, None, HeldOutText())
    return TaskData(prepared, data.sizes)


@pytest.mark.parametrize(("kind", "packed"), [("bert", True), ("bert", False), ("deberta", True)])
@pytest.mark.parametrize("held_out", [False, True])
def test_an_evaluation_batch_is_never_split(kind, packed, held_out):
    """Processes evaluate equally many batches, so that some have two examples."""
    for size, expected in ((64, [10]), (1, [1] * 10)):
        data = data_of(kind, packed=packed, evaluation_batch_size=size)
        batches = (of_held_out_text(data) if held_out else data).evaluation("dev", "cpu")
        assert [batch.examples for batch in batches] == expected
    shares = [batches.share(rank, 3) for rank in range(3)]
    assert [[batch.examples for batch in own] for own in shares] == [[2, 2], [2, 1], [2, 1]]


CPU, GPU = ("cpu", "32-true"), ("gpu", "bf16-mixed")


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
    parts = [p for b in (*step.tasks.values(), step.meta_batch) for p in b.micro_batches]
    assert {is_packed(part.inputs) for part in parts} == {trained}
    for split in ("train", "dev", "test"):
        assert is_packed(data.evaluation(split, *where)[0].inputs) == evaluated


def test_pairs_to_predict_come_as_rows_with_names(cache_dir):
    rows = [{"text": f"a {i}", "other": f"b {i}", "label": "xy"[i % 2]} for i in range(8)]
    data = toy_data(
        Path(), cache_dir, train=rows, dev=rows, test=rows, auxiliaries={}, text_pair="other"
    )
    (batch,) = data.predict_dataloader()
    assert unlabelled_batch(batch)[:2] == [("a 0", "b 0"), ("a 1", "b 1")]


@pytest.mark.parametrize("call", ["test", "predict"])
def test_a_trainer_is_told_where_there_is_no_test_split(call, cache_dir, tmp_path):
    rows = [{"text": f"a {i}", "label": "xy"[i % 2]} for i in range(20)]
    data = toy_data(
        Path(), cache_dir, train=rows, dev=None, test=None, auxiliaries={}, test_share=0
    )
    assert len(data.prepared.splits.train) == 16
    module = FineTuning.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match="there is no test split"):
        getattr(trainer(tmp_path), call)(module, datamodule=data)


def loader_of(data, folder):
    """The loader of a Trainer that trains on a CPU."""
    data.trainer = pl.Trainer(accelerator="cpu", logger=False, default_root_dir=folder)
    data.trainer.strategy.connect(FineTuning.for_data(data, lr=1e-3))
    return data.train_dataloader()


ROWS = [{"text": f"text {n}", "label": "ab"[n % 2]} for n in range(20)]


@pytest.mark.parametrize("argument", [{"column": "text"}, {"size": 2}, {"size_seed": 1}])
def test_what_is_said_of_unlabelled_texts_needs_some(argument, cache_dir):
    own = {"encoder": "tiny", "cache_dir": cache_dir, **argument}
    with pytest.raises(UserError, match="are for unlabelled texts"):
        _ = TartanData(ROWS, auxiliaries={"tapt": "task"}, **own).prepared
    data = TartanData(ROWS, auxiliaries={"dapt": ["some text"] * 40}, **own)
    assert len(data.prepared.rows("dapt")) == (24 if "size" in argument else 40)


def test_a_signal_to_the_whole_group_leaves_the_loader_to_the_first_process(
    data_dir, cache_dir, tmp_path
):
    loader = loader_of(toy_data(data_dir, cache_dir, num_workers=1), tmp_path)
    steps = iter(loader)
    first = next(steps)
    for worker in loader._loader._iterator._workers:
        os.kill(worker.pid, signal.SIGTERM)
    assert [first.step, *(step.step for step in steps)] == list(range(len(loader)))


def test_batches_of_many_parts_come_from_workers_where_few_files_may_be_open(cache_dir, tmp_path):
    """Each tensor that a worker sends is an open file."""
    rows = [{"text": f"text {n}", "label": "ab"[n % 2]} for n in range(600)]
    data = TartanData(
        rows, rows, rows, encoder="tiny", batch_size=512, cache_dir=cache_dir, num_workers=1,
        sizes={"micro_batch_size": 2, "packed": False},
    )  # fmt: skip
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 300, hard))
    try:
        batch = next(iter(loader_of(data, tmp_path))).tasks[END_TASK]
        assert sum(len(part.inputs) for part in batch.micro_batches) > 600
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_large_gpu_gets_larger_micro_batches_unless_their_size_is_given(
    monkeypatch, data_dir, cache_dir
):
    data = toy_data(data_dir, cache_dir)
    assert data.micro_batch_size("cpu") == 16
    monkeypatch.setattr("tartan.data.task_data.is_on_cuda", lambda accelerator: True)
    assert data.micro_batch_size("gpu") * data.prepared.max_length == 2**14
    assert data.micro_batch_size("gpu", alone=False) == 16  # they share a batch's micro-batches
    given = toy_data(data_dir, cache_dir, sizes={"micro_batch_size": 3})
    assert given.micro_batch_size("gpu") == 3
