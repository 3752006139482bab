"""Runs a command's `main` under Hydra: a wrong command line is reported in one line."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from tartan.command_line.closed_pipe import quiet_at_closed_pipe
from tartan.command_line.flags import debug_after_experiment, flags_first, unknown_flag
from tartan.errors import first_line
from tartan.run_folder.stop import stop

_FULL = "HYDRA_FULL_ERROR"
"""Hydra's environment variable for whole tracebacks, with which it raises instead of exiting."""
_OURS = "TARTAN_ONE_LINE_ERRORS"
"""Environment variable that says that this program set `_FULL`, for commands that it starts."""
_LIBRARIES = ("hydra", "hydra_plugins", "omegaconf", "optuna", "joblib", "submitit", "yaml")
"""Packages that read a command line and start its jobs."""
_WITHOUT_DEFAULT = ("experiment=", "search=", "debug=")
"""Groups that Hydra wants added with `+`, because `conf/config.yaml` chooses nothing of them."""


def run_command_line(main: Callable[[], object]) -> None:
    """Call Hydra's `main`; an invalid command line prints one line and exits with code 1.

    `experiment=NAME` stands for `+experiment=NAME`, and flags such as `-m` may stand anywhere. The
    exit code is 141 where the reader of what it prints has gone.
    """
    unknown = unknown_flag(sys.argv[1:])
    if unknown is not None:
        stop(f"there is no flag {unknown}; options are written NAME=VALUE, without dashes")
    arguments = debug_after_experiment(flags_first(sys.argv[1:]))
    sys.argv[1:] = [f"+{a}" if a.startswith(_WITHOUT_DEFAULT) else a for a in arguments]
    wanted = os.environ.get(_FULL, "0") == "1" and _OURS not in os.environ
    os.environ |= {_FULL: "1"} if wanted else {_FULL: "1", _OURS: "1"}
    # without them a folder of configs that does not exist is passed over
    warnings.filterwarnings("error", message=r"provider=hydra\.searchpath.* is not available")
    try:
        with quiet_at_closed_pipe():
            main()
    except KeyboardInterrupt:  # while a launcher waited for its processes
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        line = None if wanted else message_of(error)
        if line is None:
            raise
        stop(line)


def message_of(error: Exception) -> str | None:
    """Return an error in one line if Hydra or a launcher raised it; None for any other."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__")) if frames else ""
    is_theirs = isinstance(error, HydraException | OmegaConfBaseException | UserWarning)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OverrideParseException):
        return f"cannot read {error.override!r}: {first_line(error)}"
    if not (is_theirs or module.partition(".")[0] in _LIBRARIES):
        package = type(error).__module__.partition(".")[0]
        if package not in _LIBRARIES:
            return None
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines) or type(error).__name__
