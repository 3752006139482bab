"""Another process that holds a run folder, as a run does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import ROOT

HOLD = """
import pathlib, sys
from tartan.runs.folder import exclusive_run
with exclusive_run(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The process, which holds `folder` until the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()
