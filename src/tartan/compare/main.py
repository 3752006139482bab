"""The command `tartan compare task.train=labels.csv`: a race that ends with a classifier."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra.errors import HydraException
from rich.console import Console
from rich.markdown import Markdown

from tartan.compare.outcome import write_outcome
from tartan.compare.plan import request_of
from tartan.compare.race import Race
from tartan.errors import UserError
from tartan.files import process_lock
from tartan.runs.command_line import message_of, quiet_at_closed_pipe, quiet_libraries


def main(arguments: Sequence[str]) -> int:
    """Race, train the winner on all labels, and say how it was chosen.

    Returns:
        The exit code: 0, 1 for an error or a failed run, 130 after Ctrl-C.
    """
    if {"-h", "--help"} & set(arguments):
        print(Path(__file__).with_name("help.txt").read_text(encoding="utf-8"))
        return 0
    try:
        request = request_of(arguments)
        quiet_libraries()
        busy = f"another comparison is running in {request.folder}"
        with process_lock(request.folder / "compare.lock", busy):
            Console().print(Markdown(write_outcome(Race(request).run(), request.folder)))
        return 0
    except (UserError, HydraException) as error:
        print(f"error: {message_of(error)}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, SystemExit) as stop:
        print("stopped; run the same command again to continue", file=sys.stderr)
        return int(stop.code or 1) if isinstance(stop, SystemExit) else 128 + signal.SIGINT


def command() -> None:
    """Run the command line of this process."""
    with quiet_at_closed_pipe():
        sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    command()
