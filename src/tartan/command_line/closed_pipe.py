"""Ends a command quietly where nobody reads what it prints any more, as behind `| head`."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_at_closed_pipe() -> Iterator[None]:
    """End the command with exit code 141 if the reader of its output has gone."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # what is short is written only here
    except BrokenPipeError:
        closed = _without_reader()
        if not closed:  # another pipe, such as one to a process of its own
            raise
        # the interpreter flushes both once more when it ends
        for descriptor in closed:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        sys.exit(128 + signal.SIGPIPE)


def _without_reader() -> list[int]:
    """Return those of standard output and error whose reader has gone."""
    poll = select.poll()
    for stream in (sys.stdout, sys.stderr):
        poll.register(stream.fileno(), 0)
    return [descriptor for descriptor, event in poll.poll(0) if not event & select.POLLNVAL]
