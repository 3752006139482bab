"""`python -m benchmarks.corpus`: build corpora of synthetic articles, read them, print tables."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from benchmarks.corpus_case import BuildRow, ReadRow, measure_build, measure_reading
from benchmarks.row import table_of
from benchmarks.synthetic_articles import SyntheticArticles
from tartan.command_line.hydra_errors import run_command_line
from tartan.command_line.output_file import output_file
from tartan.command_line.quiet import quiet_libraries
from tartan.errors import UserError
from tartan.run_folder.stop import stop
from tartan.settings import CONF, Count, build, check


@hydra.main(version_base="1.3", config_path=CONF, config_name="bench_corpus")
def main(config: DictConfig) -> None:
    """Measure each size of the config in turn."""
    values: Any = OmegaConf.to_container(config, resolve=True)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            _measure(values, Path(values["folder"] or scratch).expanduser())
        except UserError as error:
            stop(error)


def _measure(values: dict[str, Any], folder: Path) -> None:
    console = Console()
    builds: list[BuildRow] = []
    reads: list[ReadRow] = []
    for name in ("steps", "batch_size", "max_length", "workers", "shards"):
        check(values[name], Count, name)
    check(values["examples"], Sequence[Count], "examples")
    output = output_file(values["output"])
    words = _in_fresh_process(_words_of, values["encoder"])
    options = [values[name] for name in ("steps", "batch_size", "max_length")]
    workers = values["workers"]
    for size in values["examples"]:
        here = folder / str(size)
        synthetic = SyntheticArticles(words, size, values["shards"])
        began = time.perf_counter()
        written = synthetic.write(here / "articles")
        console.print(f"{size:,}: {written} shards made in {time.perf_counter() - began:.0f} s")
        corpus = here / f"corpus-{workers}"
        builds.append(measure_build(here / "articles", corpus, workers, values["build"]))
        reads.append(_in_fresh_process(measure_reading, corpus, values["encoder"], *options))
        measured = {"build": [asdict(row) for row in builds], "read": [asdict(r) for r in reads]}
        output.write_text(json.dumps({"config": values, **measured}, indent=1) + "\n")
    console.print(table_of(builds))
    console.print(table_of(reads))
    console.print(f"figures in {output}", highlight=False)


def _words_of(encoder: dict[str, Any]) -> list[str]:
    """Return the whole words of an encoder's vocabulary, in its order."""
    vocabulary = build(encoder, "encoder").load().tokenizer.get_vocab()
    words = sorted(vocabulary, key=lambda word: vocabulary[word])
    return [word for word in words if word.isascii() and word.isalpha()]


def _in_fresh_process(function: Any, *arguments: Any) -> Any:
    """Call a function in a new process, which holds no memory of earlier measurements."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=quiet_libraries) as pool:
        return pool.submit(function, *arguments).result()


if __name__ == "__main__":
    run_command_line(main)
