"""Seeds are a function of names, the same in every process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tartan.core.seeding import generator_for, seed_device, seed_for


def test_a_seed_never_changes():
    assert seed_for(7, "finetune", "end_task", 3) == 1578797533171833068


def test_other_names_give_other_seeds_of_63_bits():
    seeds = {
        seed_for(seed, stage, task, step)
        for seed in range(3)
        for stage in ("tapt", "finetune")
        for task in ("end_task", "dapt")
        for step in range(50)
    }
    assert len(seeds) == 3 * 2 * 2 * 50
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_for(0, "ab", "c") != seed_for(0, "a", "bc") != seed_for(0, "abc")
    assert seed_for(1, 2) != seed_for(12)


def test_a_generator_draws_the_same_from_the_same_names_only():
    first, second = (generator_for(3, "stage", 5).random(8) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, generator_for(3, "stage", 6).random(8))


@pytest.mark.parametrize("kind", ["cpu", "cuda", "mps", "xpu"])
def test_a_seeded_device_draws_what_torch_would(kind, monkeypatch):
    seeds = []
    if kind != "cpu":
        monkeypatch.setattr(getattr(torch, kind), "manual_seed", seeds.append)
    expected = torch.rand(10, generator=torch.Generator().manual_seed(5))
    seed_device(5, torch.device(kind))
    assert torch.equal(torch.rand(10, device="cpu"), expected)
    assert seeds == ([] if kind == "cpu" else [5])
