"""The clock adds up what happens inside its blocks, and only that."""

from __future__ import annotations

import time

import pytest
import torch

from tartan.core.clock import PassClock


def test_only_the_time_inside_its_blocks_counts(monkeypatch):
    now = iter([10.0, 10.5, 20.0, 20.25])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    clock = PassClock(torch.device("cpu"))
    assert clock.seconds() == 0
    for _ in range(2):
        with clock.running():
            pass
    assert clock.seconds() == 0.75


def test_a_block_that_fails_counts_and_its_error_goes_on(monkeypatch):
    now = iter([1.0, 3.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    clock = PassClock(torch.device("cpu"))
    with pytest.raises(ValueError, match="inside"), clock.running():
        raise ValueError("inside")
    assert clock.seconds() == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_cuda_the_devices_own_time_counts():
    clock = PassClock(torch.device("cuda"))
    matrix = torch.ones(4096, 4096, device="cuda")
    with clock.running():
        for _ in range(20):
            matrix = matrix @ matrix * 1e-4
    first = clock.seconds()
    assert first > 0
    assert clock.seconds() == first
