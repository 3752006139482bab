"""The command `tartan predict`; heavy modules are imported inside, so that --help is quick."""

import sys

from omegaconf import DictConfig

from tartan.errors import printable
from tartan.runs.command_line import hydra_command, run_command_line
from tartan.settings import quoted

_LITERAL = ("model", "input", "output", "runs_dir", "text", "text_pair", "prefix")
"""Options whose values are not parsed by Hydra, because paths of runs have `=` and `,` in them."""


@hydra_command("predict")
def main(config: DictConfig) -> None:
    """Predict a label for each row of a file."""
    from tartan.predict.predict import Settings, predict_file
    from tartan.runs.command_line import quiet_libraries
    from tartan.settings import typed

    quiet_libraries()
    counts = predict_file(typed(config, Settings))
    shares = ", ".join(f"{printable(name)}: {n:,}" for name, n in counts.by_label.items())
    print(f"{counts.rows:,} rows; {shares}")
    print(printable(f"predictions {config.output}"))
    if config.min_score is not None:
        kept = 1 - counts.abstained / max(1, counts.rows)
        right, judged = counts.right[True], counts.right.total()
        shown = f"; {100 * right / judged:.1f} % of {judged:,} are right" if judged else ""
        print(f"{100 * kept:.1f} % have a label{shown}; the others' score is below min_score")


def quote_values(arguments: list[str]) -> list[str]:
    """Return command-line arguments with the values of paths and names quoted for Hydra."""
    options = [argument.partition("=") for argument in arguments]
    return [
        f"{name}={quoted(value)}"
        if name in _LITERAL and equals and value != "null" and value[:1] not in ("'", '"')
        else name + equals + value
        for name, equals, value in options
    ]


def command() -> None:
    """Run the command line of this process."""
    sys.argv[1:] = quote_values(sys.argv[1:])
    run_command_line(main)


if __name__ == "__main__":
    command()
