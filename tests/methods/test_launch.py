"""Which process this is, and what a run leaves of its processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tartan.launch import clean_processes, is_main_process
from tests.conftest import ROOT

NAMES = (
    "RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID", "WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
)  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "main"),
    [
        ({}, True),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, False),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
        ({"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0"}, True),
        ({"RANK": "2", "LOCAL_RANK": "0", "GROUP_RANK": "1"}, False),
        ({"SLURM_PROCID": "3"}, False),
    ],
)
def test_the_main_process_is_the_first_of_the_first_node(monkeypatch, environment, main):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_main_process() is main


def test_the_launchers_variables_are_as_before_even_if_no_process_group_began(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.delenv("LOCAL_RANK", raising=False)

    def fail():
        os.environ |= {"LOCAL_RANK": "0", "WORLD_SIZE": "2"}
        raise RuntimeError("a child died while it was imported")

    with pytest.raises(RuntimeError, match="a child died"), clean_processes():
        fail()
    assert "LOCAL_RANK" not in os.environ
    assert os.environ["WORLD_SIZE"] == "1"


CHILD = """
import os, threading, time
from tartan.launch import end_with
end_with(os.getppid())
end_with(os.getppid())
print("begun", threading.active_count(), flush=True)
time.sleep(30)
print("over", flush=True)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


def test_a_process_ends_with_the_one_that_started_it():
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begun 2\n"
        parent.kill()
        assert parent.stdout.read() == ""
