"""Runs a command of this program in a process of its own, and waits for it after Ctrl-C too."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence


def run_child(command: Sequence[str]) -> int:
    """Run a command, and return its exit code: 128 plus the signal's number if a signal ended it.

    Ctrl-C reaches the command, too. It is waited for, so that a training writes its checkpoint.
    """
    child = subprocess.Popen(command)
    interrupted = False
    while True:
        try:
            code = child.wait()
            break
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        return 128 + signal.SIGINT
    return code if code >= 0 else 128 - code
