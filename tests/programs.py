"""Call the programs as a user does, `python -m src.PROGRAM ...`, without 6 s of imports each.

Each call is a process of its own, with its own working folder, environment and standard streams. It
is forked from a server that has imported the libraries (not the program), which is what most of a
short call would spend its time on. Tests of imports, of signals and of processes that start others
take a real interpreter instead (`fresh=True`, or `subprocess`).
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHONPATH = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
"""Where a process that a test starts finds the package, and `src`."""
LIBRARIES = [
    "torch",
    "lightning.pytorch",
    "transformers",
    "transformers.models.bert.modeling_bert",
    "datasets",
    "torchmetrics.classification",
    "sklearn.metrics",
    "matplotlib.figure",
    "hydra",
    "pydantic",
    "rich.console",
]


class Call(NamedTuple):
    """A program's arguments, its folder and environment, and torch's threads."""

    program: str
    arguments: tuple[str, ...]
    cwd: str
    variables: dict[str, str]
    threads: int


def called(
    program: str, *arguments: str, cwd: Path, timeout: float = 1200, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m PROGRAM ARGUMENTS` in `cwd` and return its exit code and output.

    After `timeout` [s] it is killed, and the test fails.
    """
    return started(program, *arguments, cwd=cwd, **options).wait(timeout)


def started(
    program: str,
    *arguments: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    threads: int = 1,
    fresh: bool = False,
) -> Started:
    """Begin what `called` does, and return at once.

    `environment` are variables beside those of the tests; `fresh` starts a new interpreter, which
    imports everything itself.
    """
    more = {"PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": str(threads)}
    variables = {**os.environ, **more, **(environment or {})}
    kind = StartedFresh if fresh else Started
    return kind(Call(program, arguments, str(cwd), variables, threads))


class Started:
    """A call that goes on. What SIGKILL leaves of it is what it leaves of any process."""

    def __init__(self, call: Call) -> None:
        self._command = [sys.executable, "-m", call.program, *call.arguments]
        self._streams = tempfile.TemporaryDirectory()
        self._process = _server().Process(target=_run, args=(call, self._streams.name))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def is_over(self) -> bool:
        return not self._process.is_alive()

    def kill(self) -> None:
        """Send SIGKILL; `wait` sees the end."""
        self._process.kill()

    def wait(self, timeout: float = 1200) -> subprocess.CompletedProcess[bytes]:
        """Its exit code (-9 if it was killed) and output; killed where it takes longer."""
        self._process.join(timeout)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            raise subprocess.TimeoutExpired(self._command, timeout)
        code = self._process.exitcode
        assert code is not None
        # a process that was killed at once has written none
        files = [Path(self._streams.name) / name for name in ("stdout", "stderr")]
        out, err = (file.read_bytes() if file.exists() else b"" for file in files)
        self._streams.cleanup()
        return subprocess.CompletedProcess(self._command, code, out, err)


class StartedFresh(Started):
    """The same in an interpreter of its own, which imports everything itself."""

    def __init__(self, call: Call) -> None:
        self._command = [sys.executable, "-m", call.program, *call.arguments]
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        self._fresh = subprocess.Popen(
            self._command, cwd=call.cwd, env=call.variables, stdin=subprocess.DEVNULL,
            stdout=self._out, stderr=self._err,
        )  # fmt: skip
        self.pid = self._fresh.pid

    def is_over(self) -> bool:
        return self._fresh.poll() is not None

    def kill(self) -> None:
        self._fresh.kill()

    def wait(self, timeout: float = 1200) -> subprocess.CompletedProcess[bytes]:
        try:
            code = self._fresh.wait(timeout)
        except subprocess.TimeoutExpired:
            self._fresh.kill()
            self._fresh.wait()
            raise
        for file in (self._out, self._err):
            file.seek(0)
        return subprocess.CompletedProcess(self._command, code, self._out.read(), self._err.read())


def called_for_text(
    program: str, *arguments: str, cwd: Path, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Do as `called`, with the output as text."""
    done = called(program, *arguments, cwd=cwd, **options)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context


def _run(call: Call, streams: str) -> None:
    """Become the program (in the forked process)."""
    os.chdir(call.cwd)
    os.environ.clear()
    os.environ.update(call.variables)
    files = (os.devnull, f"{streams}/stdout", f"{streams}/stderr")
    for number, name in enumerate(files):
        opened = os.open(name, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    sys.argv = [call.program, *call.arguments]
    ours = [call.cwd, str(ROOT / "src"), str(ROOT)]
    sys.path[:] = [*ours, *(path for path in sys.path if path not in ("", *ours))]
    import torch

    torch.set_num_threads(call.threads)
    runpy.run_module(call.program, run_name="__main__", alter_sys=True)
