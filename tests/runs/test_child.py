"""A command in a process of its own, which ends as it would by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tartan.runs.command_line import run_child

SLOW = (
    "import signal, sys, time, pathlib\n"
    "def stop(*_):\n"
    "    time.sleep(1)\n"
    "    pathlib.Path(sys.argv[1]).write_text('checkpoint')\n"
    "    sys.exit(130)\n"
    "signal.signal(signal.SIGINT, stop)\n"
    "print('ready', flush=True)\n"
    "time.sleep(60)\n"
)
PARENT = (
    "import sys\n"
    "from tartan.runs.command_line import run_child\n"
    "sys.exit(run_child([sys.executable, *sys.argv[1:]]))\n"
)


@pytest.mark.parametrize(
    ("code", "found"), [("", 0), ("exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_the_exit_code_is_the_commands(code, found):
    assert run_child([sys.executable, "-c", code]) == found


def test_an_interrupted_command_finishes_what_it_does(tmp_path):
    """Ctrl-C goes to all processes of the terminal's group; the child needs a second to end."""
    script, written = tmp_path / "slow.py", tmp_path / "written"
    script.write_text(SLOW)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(script), str(written)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    os.killpg(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=60)
    assert written.read_text() == "checkpoint"
    assert (parent.returncode, errors) == (128 + signal.SIGINT, "")
