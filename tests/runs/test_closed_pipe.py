"""A command whose reader has gone ends quietly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tartan.runs.command_line import quiet_at_closed_pipe

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["src.run", "src.compare"])
def test_help_into_a_closed_pipe_ends_quietly(command):
    read, write = os.pipe()
    os.close(read)
    arguments = [sys.executable, "-m", command, "--help"]
    done = subprocess.run(
        arguments, stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_another_broken_pipe_is_an_error(capfd):
    with pytest.raises(BrokenPipeError), quiet_at_closed_pipe():
        raise BrokenPipeError
