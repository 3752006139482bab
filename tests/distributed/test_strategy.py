"""Processes are started as the program's surroundings allow."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch import distributed, nn

from tartan.core.weighting.gramian import Gramian
from tartan.distributed import strategy
from tartan.distributed.strategy import ReplicaStrategy


@pytest.mark.parametrize(
    ("interactive", "options", "method"),
    [
        (False, {}, "popen"),
        (True, {}, "fork"),
        (True, {"start_method": "spawn"}, "spawn"),
    ],
)
def test_processes_are_forked_in_a_notebook(monkeypatch, interactive, options, method):
    monkeypatch.setattr(strategy, "_IS_INTERACTIVE", interactive)
    assert ReplicaStrategy(**options)._start_method == method


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
