"""Seeds are a function of names, the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from tartan.core.seeding import generator_for, seed_device, seed_for
from tests.programs import PYTHONPATH

GOLDEN = 1578797533171833068


def test_a_seed_never_changes():
    assert seed_for(7, "finetune", "end_task", 3) == GOLDEN


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_a_seed_does_not_depend_on_the_hash_seed_of_the_process(hash_seed):
    code = "from tartan.core.seeding import seed_for; print(seed_for(7, 'finetune', 'end_task', 3))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == GOLDEN


def test_other_names_give_other_seeds():
    seeds = {
        seed_for(seed, stage, task, step)
        for seed in range(3)
        for stage in ("tapt", "finetune")
        for task in ("end_task", "dapt")
        for step in range(50)
    }
    assert len(seeds) == 3 * 2 * 2 * 50


def test_the_boundary_between_names_counts():
    assert seed_for(0, "ab", "c") != seed_for(0, "a", "bc") != seed_for(0, "abc")
    assert seed_for(1, 2) != seed_for(12)


def test_seeds_fit_in_63_bits():
    assert all(0 <= seed_for(0, number) < 2**63 for number in range(500))


def test_a_generator_draws_the_same_from_the_same_names_only():
    first, second = (generator_for(3, "stage", 5).random(8) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, generator_for(3, "stage", 6).random(8))


def test_a_seeded_device_draws_what_torch_would():
    torch.manual_seed(5)
    expected = torch.rand(10), torch.randint(100, (10,))
    seed_device(5, torch.device("cpu"))
    assert torch.equal(torch.rand(10), expected[0])
    assert torch.equal(torch.randint(100, (10,)), expected[1])


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_the_device_is_seeded_as_well_as_the_cpu(kind, monkeypatch):
    seeds = []
    monkeypatch.setattr(getattr(torch, kind), "manual_seed", seeds.append)
    seed_device(7, torch.device(kind))
    assert seeds == [7]
    assert torch.initial_seed() == 7
