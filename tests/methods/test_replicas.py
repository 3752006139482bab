"""Sums over replicas, in a group of one process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import distributed, nn

from tartan.core.body import SharedBody
from tartan.core.passes import Passes, Purpose
from tartan.core.task import Batch
from tartan.core.weighting.gramian import Gramian
from tartan.methods.strategy import ReplicaStrategy, ReplicatedBody
from tests.core.test_step_properties import problem


@pytest.fixture
def group():
    distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("kind", [SharedBody, ReplicatedBody])
def test_a_batch_without_units_reaches_nothing_whenever_it_comes(kind):
    """A zero instead of nothing would have AdamW decay the weights, and move them by momentum."""
    body, tasks, batches, _ = problem(0, 1)
    passes = Passes(kind(body, torch.float64))
    own, empty = batches[tasks[0].name], Batch([], examples=2)
    for batch, reaches in ((empty, False), (own, True), (empty, False), (own, True)):
        found = passes.gradient(Purpose("task", tasks[0].name), tasks[0], batch)
        assert bool(found.loss != 0) is reaches
        assert {value is not None for value in (*found.values, *found.of_head)} == {reaches}
        assert len(found.of_head) == len(list(tasks[0].head.parameters()))


def test_bytes_that_a_module_keeps_on_the_cpu_are_not_sent(monkeypatch):
    """NCCL sends nothing of a CPU's; the state of TorchJD's weightings lies there."""
    pytest.importorskip("torchjd")
    sent = []
    monkeypatch.setattr(distributed, "broadcast", lambda tensor, source: sent.append(tensor))
    model = nn.ModuleList([nn.BatchNorm1d(3), Gramian(["a", "b"], "PCGradWeighting")])
    assert "1._extra_state" in model.state_dict()
    ReplicaStrategy.configure_ddp(SimpleNamespace(model=model))
    kept = {*model.parameters(), *model.buffers()}
    assert {tensor.data_ptr() for tensor in sent} == {tensor.data_ptr() for tensor in kept}
