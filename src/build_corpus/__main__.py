"""The command line: `python -m src.build_corpus sources=FOLDER output=FOLDER`."""

from __future__ import annotations

import signal
import sys

import hydra
from omegaconf import DictConfig

from src.command_line import run_command_line
from src.errors import UserError


@hydra.main(version_base="1.3", config_path="../../conf", config_name="build_corpus")
def main(config: DictConfig) -> None:
    """Build a corpus and say what is in it; exit codes as of `src.run`."""
    # here, so that --help answers at once
    import datasets

    from src.build_corpus.build import build_corpus
    from src.build_corpus.settings import request_of
    from src.build_corpus.summary import summary_of

    datasets.disable_progress_bars()
    try:
        request = request_of(config)
        corpus = build_corpus(request, lambda line: print(line, flush=True))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("stopped by a signal; the same command goes on", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    for line in summary_of(corpus):
        print(line)


if __name__ == "__main__":
    run_command_line(main)
