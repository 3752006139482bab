"""Which process this is."""

from __future__ import annotations

import pytest

from tartan.distributed.identity import is_main_process, torchrun_processes

NAMES = (
    "RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID", "WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
)  # fmt: skip


@pytest.fixture
def surroundings(monkeypatch):
    """A function that sets the environment variables of a process's launcher."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def set_to(environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return set_to


@pytest.mark.parametrize(
    ("environment", "main"),
    [
        ({}, True),
        ({"LOCAL_RANK": "0", "NODE_RANK": "0"}, True),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, False),
        ({"NODE_RANK": "1"}, False),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
        ({"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0"}, True),
        ({"RANK": "2", "LOCAL_RANK": "0", "GROUP_RANK": "1"}, False),
        ({"SLURM_PROCID": "0"}, True),
        ({"SLURM_PROCID": "3"}, False),
    ],
)
def test_the_main_process_is_the_first_of_the_first_node(surroundings, environment, main):
    surroundings(environment)
    assert is_main_process() is main


def test_processes_that_torchrun_started_are_counted(surroundings):
    surroundings({})
    assert torchrun_processes() is None
    surroundings({"WORLD_SIZE": "2"})  # Lightning's own launcher
    assert torchrun_processes() is None
    surroundings({"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4"})
    assert torchrun_processes() == 4
