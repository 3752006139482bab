"""The command line `python -m src.build_corpus sources=FOLDER output=FOLDER task=TASK`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import hydra
from omegaconf import DictConfig

from tartan.build_corpus.building import counts_in_words
from tartan.command_line.hydra_errors import run_command_line
from tartan.data.corpus_folder import MANIFEST, CorpusFolder
from tartan.errors import UserError, printable
from tartan.run_folder.stop import stop
from tartan.settings import CONF


@hydra.main(version_base="1.3", config_path=CONF, config_name="build_corpus")
def main(config: DictConfig) -> None:
    """Build a corpus and print a summary; the exit codes are those of `src.run`."""
    # here, so that --help answers at once
    from tartan.build_corpus.build import build_corpus
    from tartan.build_corpus.settings import options_of

    try:
        corpus = build_corpus(options_of(config), lambda line: print(printable(line), flush=True))
    except UserError as error:
        stop(error)
    except KeyboardInterrupt:
        print("stopped by a signal; run the same command to continue", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    for line in summary_of(corpus) if corpus else ["submitted; the same command says what became"]:
        print(printable(line))


def summary_of(corpus: CorpusFolder) -> Iterator[str]:
    """Yield the lines of a corpus' summary: counts, and how to train on it."""
    counts, size = corpus.manifest.counts, sum(shard.bytes for shard in corpus.manifest.shards)
    for kind, done in (("records", "read"), ("examples", "made")):
        left = dict(counts[kind])
        first, kept = left.pop(done), left.pop("kept")
        yield f"{kind:9} {first:,} {done}, {kept:,} kept; left out: {counts_in_words(left)}"
    yield (
        f"corpus    {counts['words']:,} words in {len(corpus.manifest.shards)} shards, "
        f"{size / 1e9:.3g} GB"
    )
    yield f"manifest  {corpus.path / MANIFEST}"
    yield f"train on it with auxiliary.dapt.path={corpus.path}"


def command() -> None:
    """Run the command line of this process."""
    run_command_line(main)


if __name__ == "__main__":
    command()
