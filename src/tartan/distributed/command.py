"""Sets the command line of the processes that Lightning starts for a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def processes_get_arguments(arguments: Sequence[str]) -> Iterator[None]:
    """Give `arguments` to processes that are started inside the `with` block.

    Lightning would repeat its own process's arguments, which in a sweep are those of the whole
    sweep.
    """
    before, sys.argv = sys.argv, [sys.argv[0], *arguments]
    try:
        yield
    finally:
        sys.argv = before
