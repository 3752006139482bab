"""The command line `python -m src.predict model=FOLDER input=FILE output=FILE`.

Only Hydra is imported here, so that `--help` answers at once.
"""

from __future__ import annotations

import signal
import sys

import hydra
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError, printable
from tartan.runs.command_line import run_command_line, stop
from tartan.settings import CONF, quoted

_LITERAL = ("model", "input", "output", "runs_dir", "text", "text_pair", "prefix")
"""Options whose values are not parsed by Hydra, because paths of runs have `=` and `,` in them."""
_EXAMPLE = "python -m src.predict model=latest input=texts.csv output=predictions.csv"


@hydra.main(version_base="1.3", config_path=CONF, config_name="predict")
def main(config: DictConfig) -> None:
    """Predict a label for each row of a file.

    Exit codes: 0; 1 after an error; 130 after Ctrl-C; 141 if standard output is closed early.
    """
    output = "-" if OmegaConf.is_missing(config, "output") else str(config.output)
    try:
        _predict(config, output)
    except UserError as error:
        stop(error)
    except KeyboardInterrupt:
        advice = "" if output == "-" else f"; run the same command to continue with {output}"
        print(f"stopped{advice}", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def _predict(config: DictConfig, output: str) -> None:
    missing = [name for name in ("model", "input", "output") if OmegaConf.is_missing(config, name)]
    if missing:
        raise UserError(f"{missing[0]}= is missing; e.g. {_EXAMPLE}")
    from tartan.predict.predict import Settings, predict_file
    from tartan.runs.command_line import quiet_libraries
    from tartan.settings import typed

    quiet_libraries()
    settings = typed(config, Settings)
    done = predict_file(settings)
    shares = ", ".join(f"{printable(label)}: {count:,}" for label, count in done.counts.items())
    before = f", {done.resumed:,} of them before it was stopped" if done.resumed else ""
    stream = sys.stderr if output == "-" else sys.stdout
    print(f"{done.rows:,} rows{before}; {shares}", file=stream)
    if output != "-":
        print(output)


def quote_values(arguments: list[str]) -> list[str]:
    """Return command-line arguments with the values of paths and names quoted for Hydra."""
    found = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        if name in _LITERAL and equals and value != "null" and not is_quoted:
            argument = f"{name}={quoted(value)}"
        found.append(argument)
    return found


def command() -> None:
    """Run the command line of this process."""
    sys.argv[1:] = quote_values(sys.argv[1:])
    run_command_line(main)


if __name__ == "__main__":
    command()
