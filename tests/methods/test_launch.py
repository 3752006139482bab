"""Which process this is, and what a run leaves of its processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tartan.methods.launch import clean_processes, is_main_process, torchrun_processes
from tartan.runs.command import FOLDER, STARTER
from tests.conftest import ROOT
from tests.programs import called

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
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, False),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
        ({"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0"}, True),
        ({"RANK": "2", "LOCAL_RANK": "0", "GROUP_RANK": "1"}, False),
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
from tartan.methods.launch import end_with
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


@pytest.mark.slow
def test_a_runs_second_process_does_not_wait_for_a_first_that_was_killed(toy_options, tmp_path):
    """Killed before the two have met: the second would wait for half an hour."""
    environment = {
        "NODE_RANK": "0", "LOCAL_RANK": "1", "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9",  # where nobody answers
        FOLDER: str(tmp_path / "run"), STARTER: "1",
    }  # fmt: skip
    options = [*toy_options, "method=finetune", "trainer=ddp", "trainer.devices=2"]
    done = called("src.run", *options, cwd=tmp_path, environment=environment, timeout=120)
    assert (done.returncode, done.stdout) == (1, b"")
