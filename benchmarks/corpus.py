"""`python -m benchmarks.corpus`: build corpora of synthetic articles, and read them in batches."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from benchmarks.measure import options_of, show, write_figures
from benchmarks.synthetic_articles import FIELD, SyntheticArticles
from tartan.data.corpus import read_manifest
from tartan.runs.command_line import quiet_libraries
from tartan.settings import CONF, build, quoted

MIB = 1 << 20
_EVERY_S = 0.05


def measure_build(
    articles: Path, corpus: Path, workers: int, options: Sequence[str] = ("decontaminate=null",)
) -> dict[str, Any]:
    """Run the command that builds a corpus of the articles' most frequent field.

    Memory is the peak without pages of files: of the `largest` process, and of `all` together.
    `made_s` is None where the command resumed an earlier one.

    Args:
        articles: folder of the articles.
        corpus: folder of the corpus.
        workers: number of processes of the build.
        options: further options of the command.
    """
    resumed = (corpus / "building").is_dir()
    command = [
        sys.executable, "-m", "tartan", "build-corpus", f"sources={quoted(articles)}",
        f"output={quoted(corpus)}", f"field_of_study=[{FIELD}]",
        f"workers={workers}", *options,
    ]  # fmt: skip
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    with peak_memory(process.pid) as peak:
        code = process.wait()
    seconds = time.perf_counter() - began
    if code:
        sys.exit(f"the build failed: {' '.join(command)}")
    counts = read_manifest(corpus).counts
    made = counts["examples"]["made"]
    return {
        "kept": counts["examples"]["kept"],
        "made": made,
        "articles": counts["records"]["read"],
        "seconds": seconds,
        "made_s": None if resumed else made / seconds,
        "largest_mib": peak["largest"] / MIB,
        "all_mib": peak["all"] / MIB,
    }


def measure_reading(
    corpus: Path, encoder: dict[str, Any], steps: int, batch_size: int, max_length: int
) -> dict[str, Any]:
    """Read batches of masked language modelling as a run does, without training.

    Call it in a new process, so that the memory is that of reading.

    Args:
        corpus: folder of the corpus.
        encoder: the encoder's config.
        steps: number of batches to read after the first.
        batch_size: number of examples in a batch.
        max_length: longest input; longer texts are cut [tokens].
    """
    from tartan.data.batches import BatchNeeds, StepBatches, TaskExamples
    from tartan.data.corpus import load_corpus
    from tartan.data.tokenise import tokenised_as_read
    from tartan.objectives.masked_lm import MaskedLM

    loaded = build(encoder, "encoder").load()
    collate = MaskedLM().collate(loaded, batch_size)
    with peak_memory() as peak:
        began = time.perf_counter()
        texts = load_corpus(corpus, "text", corpus).texts
        rows = tokenised_as_read(texts, loaded.tokenizer, max_length)
        task = TaskExamples(rows, collate, batch_size)
        batches = StepBatches({"dapt": task}, None, steps + 1, 0, BatchNeeds("joint", ("dapt",)))
        batches[0]
        first = time.perf_counter()
        for step in range(1, steps + 1):
            batches[step]
        seconds = time.perf_counter() - first
    return {
        "examples": len(texts),
        "start": first - began,
        "read": steps * batch_size,
        "read_s": steps * batch_size / seconds,
        "peak_mib": peak["largest"] / MIB,
    }


@contextmanager
def peak_memory(pid: int | None = None) -> Iterator[dict[str, int]]:
    """Sample the memory of a process and its descendants within a `with` block.

    Args:
        pid: id of the process; None for this one.

    Yields:
        The peaks so far: `largest` of one process, `all` of all together [bytes].
    """
    process, peak, ended = psutil.Process(pid), {"largest": 0, "all": 0}, threading.Event()

    def sample() -> None:
        own = []
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                memory = one.memory_info()
                own.append(memory.rss - getattr(memory, "shared", 0))
        peak["largest"] = max([peak["largest"], *own])
        peak["all"] = max(peak["all"], sum(own))

    def watch() -> None:
        while True:
            with suppress(psutil.NoSuchProcess):  # it may end between two samples
                sample()
            if ended.wait(_EVERY_S):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def words_of(encoder: dict[str, Any]) -> list[str]:
    """Return the whole words of an encoder's vocabulary, in its order."""
    vocabulary = build(encoder, "encoder").load().tokenizer.get_vocab()
    words = sorted(vocabulary, key=lambda word: vocabulary[word])
    return [word for word in words if word.isascii() and word.isalpha()]


def in_fresh_process(function: Any, *arguments: Any) -> Any:
    """Call a function in a new process, which holds no memory of earlier measurements."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=quiet_libraries) as pool:
        return pool.submit(function, *arguments).result()


def main(arguments: Sequence[str]) -> None:
    """Measure each size of the options in turn."""
    options = options_of("corpus", arguments)
    with initialize_config_dir(CONF, version_base="1.3"):
        composed = compose("config", overrides=[f"encoder={options.encoder}"])
    encoder: Any = OmegaConf.to_container(composed.encoder, resolve=True)
    builds: list[dict[str, Any]] = []
    reads: list[dict[str, Any]] = []
    words = in_fresh_process(words_of, encoder)
    with tempfile.TemporaryDirectory() as scratch:
        for size in options.examples:
            folder = Path(options.folder or scratch).expanduser() / str(size)
            synthetic = SyntheticArticles(words, size, options.shards)
            print(f"{size:,}: {synthetic.write(folder / 'articles')} shards made")
            corpus = folder / f"corpus-{options.workers}"
            built = measure_build(folder / "articles", corpus, options.workers, options.build)
            read = in_fresh_process(
                measure_reading, corpus, encoder, options.steps, options.batch_size,
                options.max_length,
            )  # fmt: skip
            builds.append(built)
            reads.append(read)
            plain = OmegaConf.to_container(options)
            write_figures(options.output, options=plain, build=builds, read=reads)
    show(builds, "building a corpus; peak memory without pages of files")
    show(reads, "reading random batches, without the model; memory without pages of files")
    print(f"figures in {options.output}")


if __name__ == "__main__":
    main(sys.argv[1:])
