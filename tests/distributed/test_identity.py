"""Which process this is."""

from __future__ import annotations

import pytest

from src.distributed.identity import is_main_process, torchrun_processes


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
def test_the_main_process_is_the_first_of_the_first_node(environment, main):
    assert is_main_process(environment) is main


def test_processes_that_torchrun_started_are_counted():
    assert torchrun_processes({}) is None
    assert torchrun_processes({"WORLD_SIZE": "2"}) is None  # Lightning's own launcher
    assert torchrun_processes({"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4"}) == 4
