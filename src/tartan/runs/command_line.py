"""What the commands share: errors of one line, quiet libraries, children, tables."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import hydra
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from tartan.errors import UserError, first_line, printable
from tartan.settings import CONF

if TYPE_CHECKING:
    from rich.table import Table

_FULL, _OURS = "HYDRA_FULL_ERROR", "TARTAN_ONE_LINE_ERRORS"
"""Hydra's environment variable for whole tracebacks, with which it raises instead of exiting; and
one that says that this program set it, for commands that it starts."""
_LIBRARIES = ("hydra", "hydra_plugins", "omegaconf", "optuna", "joblib", "submitit", "yaml")
"""Packages that read a command line and start its jobs."""


def stop(reason: object) -> NoReturn:
    """Print the reason in one line and end the command with exit code 1 (`SystemExit`)."""
    print(f"error: {reason}", file=sys.stderr)
    raise SystemExit(1)


def run_command_line(main: Callable[[], object]) -> None:
    """Call Hydra's `main`, with flags in any place; what is wrong is one line, and exit code 1."""
    named = any(argument.startswith(("--config-dir", "-cd")) for argument in sys.argv)
    sys.argv[1:] = sorted(sys.argv[1:], key=_place)
    folder = Path("conf")
    if not named and folder.is_dir() and not folder.samefile(CONF):
        sys.argv[1:1] = ["--config-dir", str(folder)]
    full = os.environ.get(_FULL) == "1" and _OURS not in os.environ
    os.environ |= {_FULL: "1"} if full else {_FULL: "1", _OURS: "1"}
    # Python 3.14 checks help texts at once, of which Hydra 1.3 has one that is rendered later
    argparse.ArgumentParser._check_help = lambda *_: None  # type: ignore[attr-defined]
    # a folder of configs that does not exist would be passed over
    warnings.filterwarnings("error", message=r"provider=hydra\.searchpath.* is not available")
    try:
        with quiet_at_closed_pipe():
            main()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        line = None if full else message_of(error)
        if line is None:
            raise
        stop(line)


def hydra_command(config_name: str) -> Callable[[Callable[[DictConfig], None]], Any]:
    """Make a function the main one of a command, with our configs; its errors are one line."""

    def decorated(function: Callable[[DictConfig], None]) -> Any:
        @functools.wraps(function)
        def call(config: DictConfig) -> None:
            try:
                function(config)
            except (UserError, OSError) as error:  # here, or Hydra would add a line
                stop(message_of(error) or error)

        return hydra.main(version_base="1.3", config_path=CONF, config_name=config_name)(call)

    return decorated


def _place(argument: str) -> int:
    """Sort flags first, and last what replaces the encoder of an experiment."""
    is_override = argument.startswith("~") or ("=" in argument and not argument.startswith("-"))
    return is_override + argument.startswith("+debug=")


def message_of(error: Exception) -> str | None:
    """Return an error in one line if we, Hydra or a launcher raised it; None for any other."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OverrideParseException):
        return f"cannot read {error.override!r}: {first_line(error)}"
    if isinstance(error, OSError) and error.strerror:
        return ": ".join(map(str, filter(None, (error.filename, error.strerror))))
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    modules = (str(frame.f_globals.get("__name__")), type(error).__module__)
    known = isinstance(error, HydraException | OmegaConfBaseException | UserWarning)
    if not known and not any(name.partition(".")[0] in _LIBRARIES for name in modules):
        return None
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines) or type(error).__name__


@contextmanager
def quiet_at_closed_pipe() -> Iterator[None]:
    """End the command with exit code 141 if nobody reads its output any more (`| head`)."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # what is short is written only here
    except BrokenPipeError:
        for stream in (sys.stdout, sys.stderr):  # which the interpreter flushes once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.exit(128 + signal.SIGPIPE)


def run_child(command: Sequence[str]) -> int:
    """Run a command, which Ctrl-C lets finish; return its exit code, 128 + n after signal n."""
    child, interrupted = subprocess.Popen(command), False
    while child.returncode is None:
        try:
            child.wait()
        except KeyboardInterrupt:
            interrupted = True
    code = child.returncode
    return 128 + signal.SIGINT if interrupted else code if code >= 0 else 128 - code


class _PrintableRecord(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802
        return printable(super().getMessage())


def quiet_libraries() -> None:
    """Silence notices and short progress bars; make control characters in logs visible."""
    import datasets
    import transformers

    logging.setLogRecordFactory(_PrintableRecord)
    for name in (
        "lightning.pytorch", "lightning.fabric", "lightning_utilities", "httpx",
        # Lightning configures its logger when it is first imported, which may be later
        "lightning.pytorch.utilities.rank_zero",
    ):  # fmt: skip
        logging.getLogger(name).setLevel(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    # the last of a run that goes on, which finds its own folders
    for notice in (
        "treespec", "smaller than the logging interval", "does not have many workers",
        "exists and is not empty", "SpearmanCorrcoef",
    ):  # fmt: skip
        warnings.filterwarnings("ignore", message=f".*{notice}.*")


def titled_table(title: str, *columns: str) -> Table:
    """Return an empty table: words in the first column, numbers in the others."""
    from rich.table import Column, Table

    # a long name is folded, so that settings stay apart; half a number would be a wrong one
    numbers = (Column(name, justify="right", overflow="ellipsis") for name in columns[1:])
    return Table(
        Column(columns[0], overflow="fold"), *numbers,
        title=title, title_justify="left", title_style="bold",
    )  # fmt: skip


def duration(seconds: float) -> str:
    """Return a duration in words, e.g. `45 s`, `12 min`, `3.4 h`, `2.1 d`."""
    for unit, size, digits in (("s", 1, 0), ("min", 60, 0), ("h", 3600, 1)):
        if seconds / size < (48 if unit == "h" else 99.5):
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds / 86400:.1f} d"
