"""Processes are started as the program's surroundings allow."""

from __future__ import annotations

import pytest

from src.distributed import strategy
from src.distributed.strategy import ReplicaStrategy


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
