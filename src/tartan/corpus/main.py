"""The command line `python -m src.build_corpus sources=FOLDER output=FOLDER task=TASK`."""

import signal
import sys

from omegaconf import DictConfig

from tartan.errors import printable
from tartan.runs.command_line import hydra_command, run_command_line


@hydra_command("build_corpus")
def main(config: DictConfig) -> None:
    """Build a corpus and print a summary; the exit codes are those of `src.run`."""
    # here, so that --help answers at once
    from tartan.corpus.build import build_corpus
    from tartan.corpus.steps import options_of

    try:
        options = options_of(config)
        manifest = build_corpus(options, lambda line: print(printable(line), flush=True))
    except KeyboardInterrupt:
        print("stopped by a signal; run the same command to continue", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    for kind in ("records", "examples"):
        counts = (f"{n:,} {name.replace('_', ' ')}" for name, n in manifest.counts[kind].items())
        print(f"{kind}: {', '.join(counts)}")
    print(f"corpus: {manifest.counts['words']:,} words in {len(manifest.shards)} shards")
    print(printable(f"train on it with auxiliary.dapt.path={options.output}"))


def command() -> None:
    """Run the command line of this process."""
    run_command_line(main)


if __name__ == "__main__":
    command()
