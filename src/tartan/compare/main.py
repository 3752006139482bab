"""The command `tartan compare task.train=labels.csv`: a race that ends with a classifier."""

import signal
import sys
from collections.abc import Sequence

from hydra.errors import HydraException

from tartan.compare.outcome import write_outcome
from tartan.compare.plan import request_of
from tartan.compare.race import Race
from tartan.errors import UserError
from tartan.files import process_lock
from tartan.runs.command_line import message_of, quiet_at_closed_pipe, quiet_libraries

HELP = """\
tartan compare task.train=labels.csv [auxiliary.dapt.path=texts/] [minutes=30] [NAME=VALUE ...]

Finds the best way to train a classifier on your labels, and trains it. Methods race over folds of
the labelled examples, each at the same cost. The simplest one within a standard error of the best
is trained on all labels, and exported to FOLDER/best/classifier. Options of its own:
  minutes=         time for the whole; it decides over how many folds the methods race, and
                   shortens runs only where not even one fold fits
  folds=           parts of the labelled examples; by default 5, above 1,000 examples 3
  methods=finetune,tapt,dapt_tapt,mt_tartan
                   also dapt, tapt_mt_tartan, meta_tartan, tapt_meta_tartan, aang_static, aang
  steps=360        cost of a run, in steps of fine-tuning
  batch_size=32    examples of each task in a step
  pilot_steps=8    steps of each stage in which its cost is measured
  folder=runs/compare
  METHOD:OPTION=VALUE   an option of one method, e.g. meta_tartan:weighting.eta=0.1 or
                   mt_tartan:weighting=uniform
All others are options of all runs: task=, encoder=, auxiliary=, hydra/launcher=, ... The same
command resumes an interrupted comparison.
"""


def main(arguments: Sequence[str]) -> int:
    """Race, train the winner on all labels, and say how it was chosen.

    Returns:
        The exit code: 0, 1 for an error or a failed run, 130 after Ctrl-C.
    """
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    try:
        request = request_of(arguments)
        quiet_libraries()
        busy = f"another comparison is running in {request.folder}"
        with process_lock(request.folder / "compare.lock", busy):
            print(write_outcome(Race(request).run(), request.folder))
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
