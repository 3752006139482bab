"""Time inside blocks and peaks of memory."""

from __future__ import annotations

import time

import psutil
import pytest
import torch

from tartan.methods.measuring import PassClock, peak_bytes, peak_of_device

CPU = torch.device("cpu")


def test_only_the_time_inside_its_blocks_counts(monkeypatch):
    now = iter([10.0, 10.5, 20.0, 20.25])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    clock = PassClock(CPU)
    for _ in range(2):
        with clock.running():
            pass
    assert clock.seconds() == 0.75


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


def test_peak_bytes_are_those_held_at_once():
    def run():
        for _ in range(3):
            held = torch.empty(1000, dtype=torch.float32)
            del held

    assert 4000 <= peak_bytes(run, CPU) < 8000


def test_the_peak_of_a_process_is_no_less_than_what_it_holds():
    held = torch.ones(1 << 25)  # 128 MiB, touched
    assert peak_of_device(CPU) >= 0.9 * psutil.Process().memory_info().rss >= 0.9 * held.nbytes
