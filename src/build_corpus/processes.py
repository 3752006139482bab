"""Tasks over processes, each task a whole file; no process outlives the one that began it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

from src.errors import UserError

T = TypeVar("T")

_stop: Event | None = None


class _StoppedError(Exception):
    """Another task failed: the rest of this one is not wanted."""


def each(
    work: Callable[[T, Callable[[], None]], list[str]], tasks: Sequence[T], num_proc: int
) -> Iterator[tuple[T, list[str]]]:
    """`(task, what work returned)` in the order of the tasks.

    Args:
        work: is given a task, and what it has to call now and then, so that it can be stopped.
        num_proc: processes; one works in this process.

    Raises:
        UserError: a process was killed, for want of memory or by hand.
        Exception: what `work` raises; the other tasks are stopped.
    """
    if min(num_proc, len(tasks)) <= 1:
        for task in tasks:
            yield task, work(task, _go_on)
        return
    # Fresh processes: forked ones would share the threads' locks of the libraries.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(
        min(num_proc, len(tasks)), context, initializer=_begin, initargs=(stop,)
    )
    try:
        futures: list[Future[Any]] = [pool.submit(_run, work, task) for task in tasks]
        for task, future in zip(tasks, futures, strict=True):
            yield task, future.result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process was killed, perhaps for want of memory; the same command goes on, with less "
            "memory where num_proc is lower"
        ) from error
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _go_on() -> None:
    """In the process that gives the tasks there is nothing to be told."""


def _begin(stop: Event) -> None:
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    """End with the first process, however it ends: two must never write the same file."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(work: Callable[[Any, Callable[[], None]], list[str]], task: Any) -> list[str]:
    return work(task, _pulse)


def _pulse() -> None:
    if _stop is not None and _stop.is_set():
        raise _StoppedError
