"""The command line of the processes that Lightning starts for a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def started_as(arguments: Sequence[str]) -> Iterator[None]:
    """Have processes that are started inside get `arguments` on their command line.

    Lightning repeats that of its own process, which in a sweep is the whole sweep's.
    """
    before, sys.argv = sys.argv, [sys.argv[0], *arguments]
    try:
        yield
    finally:
        sys.argv = before
