"""A process that another one started ends with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tartan.experiment.main import FOLDER, STARTER
from tests.conftest import ROOT
from tests.programs import called

CHILD = """
import os, threading, time
from tartan.distributed.parent import end_with
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
