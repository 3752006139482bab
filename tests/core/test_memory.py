"""Peaks of memory."""

from __future__ import annotations

import psutil
import torch

from tartan.core.memory import peak_bytes, peak_of_device, peak_of_process

CPU = torch.device("cpu")


def test_peak_bytes_are_those_held_at_once():
    def run():
        for _ in range(3):
            held = torch.empty(1000, dtype=torch.float32)
            del held

    assert 4000 <= peak_bytes(run, CPU) < 8000


def test_the_peak_of_a_process_is_no_less_than_what_it_holds_and_is_kept():
    held = torch.ones(1 << 25)  # 128 MiB, touched
    now = psutil.Process().memory_info().rss
    assert now >= held.nbytes
    peak = peak_of_process()
    assert peak >= 0.9 * now
    del held
    assert peak_of_process() >= peak
    assert peak_of_device(CPU) >= peak
