"""The command line `python -m src.build_corpus sources=FOLDER output=FOLDER task=TASK`."""

from __future__ import annotations

import signal
import sys

import hydra
from omegaconf import DictConfig

from tartan.errors import UserError, printable
from tartan.runs.command_line import run_command_line, stop
from tartan.settings import CONF


@hydra.main(version_base="1.3", config_path=CONF, config_name="build_corpus")
def main(config: DictConfig) -> None:
    """Build a corpus and print a summary; the exit codes are those of `src.run`."""
    # here, so that --help answers at once
    from tartan.corpus.build import build_corpus
    from tartan.corpus.settings import options_of

    try:
        corpus = build_corpus(options_of(config), lambda line: print(printable(line), flush=True))
    except UserError as error:
        stop(error)
    except KeyboardInterrupt:
        print("stopped by a signal; run the same command to continue", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    if corpus is None:
        print("submitted; the same command says what became")
        return
    counts, shards = corpus.manifest.counts, corpus.manifest.shards
    for kind, done in (("records", "read"), ("examples", "made")):
        left = dict(counts[kind])
        first, kept = left.pop(done), left.pop("kept")
        others = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in left.items())
        print(f"{kind:9} {first:,} {done}, {kept:,} kept; left out: {others}")
    size = sum(shard.bytes for shard in shards) / 1e9
    print(f"corpus    {counts['words']:,} words in {len(shards)} shards, {size:.3g} GB")
    print(printable(f"train on it with auxiliary.dapt.path={corpus.path}"))


def command() -> None:
    """Run the command line of this process."""
    run_command_line(main)


if __name__ == "__main__":
    command()
