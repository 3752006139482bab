"""Measures what it costs to build a corpus, and to read it for training."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from src.bench.process_memory import peak_memory
from src.bench.row import Row
from src.bench.synthetic_articles import FIELD
from src.configuration.build import build
from src.configuration.quoting import quoted_path
from src.data.corpus_manifest import read_corpus_folder
from src.errors import UserError

MIB = 1 << 20


@dataclass(frozen=True)
class BuildRow(Row):
    """The cost of a build.

    Attributes:
        workers: number of processes of the build.
        articles: number of articles that were read.
        made: number of examples before repeats were removed.
        kept: number of examples of the corpus.
        bytes: size of the corpus [bytes].
        seconds: time of the whole command [s].
        resumed: whether the command resumed an earlier one, so that `seconds` is only a part.
        largest: peak memory of one process, without pages of files [bytes].
        all: peak memory of all processes together, likewise [bytes].
    """

    title = "building a corpus; peak memory without pages of files"
    columns = (
        "examples", "with repeats", "articles", "GB", "processes", "s", "examples/s",
        "MiB, one process", "MiB, all",
    )  # fmt: skip
    workers: int
    articles: int
    made: int
    kept: int
    bytes: int
    seconds: float
    resumed: bool
    largest: int
    all: int

    def cells(self) -> tuple[str, ...]:
        return (
            f"{self.kept:,}", f"{self.made:,}", f"{self.articles:,}", f"{self.bytes / 1e9:.2f}",
            str(self.workers), f"{self.seconds:.0f}" + (" (resumed)" if self.resumed else ""),
            "" if self.resumed else f"{self.made / self.seconds:,.0f}",
            f"{self.largest / MIB:,.0f}", f"{self.all / MIB:,.0f}",
        )  # fmt: skip


@dataclass(frozen=True)
class ReadRow(Row):
    """The cost of reading batches of a whole corpus.

    Attributes:
        examples: number of examples of the corpus.
        start: time from opening the folder to the first batch [s].
        read: number of examples that were read after the first batch.
        seconds: time that this took [s].
        before: the process's memory before it opened the corpus, without pages of files [bytes].
        peak: its peak memory since, likewise [bytes].
        mapped: peak of the pages of files, of which the corpus is one [bytes].
    """

    title = "reading random batches, without the model; memory without pages of files"
    columns = (
        "examples", "s to first batch", "read", "read/s", "MiB at start", "MiB, peak",
        "MiB of files",
    )  # fmt: skip
    examples: int
    start: float
    read: int
    seconds: float
    before: int
    peak: int
    mapped: int

    def cells(self) -> tuple[str, ...]:
        return (
            f"{self.examples:,}", f"{self.start:.2f}", f"{self.read:,}",
            f"{self.read / self.seconds:,.0f}", f"{self.before / MIB:,.0f}",
            f"{self.peak / MIB:,.0f}", f"{self.mapped / MIB:,.0f}",
        )  # fmt: skip


def measure_build(
    articles: Path, corpus: Path, workers: int, options: Sequence[str] = ("decontaminate=null",)
) -> BuildRow:
    """Run the command that builds a corpus of the articles' most frequent field.

    Args:
        articles: folder of the articles.
        corpus: folder of the corpus.
        workers: number of processes of the build.
        options: further options of the command.

    Raises:
        UserError: the command fails; the message holds its last line.
    """
    resumed = (corpus / "building").is_dir()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "src.build_corpus", f"sources={quoted_path(articles)}",
         f"output={quoted_path(corpus)}",
         f"field_of_study=[{FIELD}]", f"executor.workers={workers}", *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with peak_memory(process.pid) as peak:
        _, errors = process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode != 0:
        raise UserError(f"the build failed: {(errors.strip().splitlines() or ['?'])[-1]}")
    manifest = read_corpus_folder(corpus).manifest
    counts = manifest.counts
    return BuildRow(
        workers=workers,
        articles=counts["records"]["read"],
        made=counts["examples"]["made"],
        kept=counts["examples"]["kept"],
        bytes=sum(shard.bytes for shard in manifest.shards),
        seconds=seconds,
        resumed=resumed,
        largest=peak.largest,
        all=peak.all,
    )


def measure_reading(
    corpus: Path, encoder: dict[str, Any], steps: int, batch_size: int, max_length: int
) -> ReadRow:
    """Read batches of masked language modelling as a run does, without training.

    Call it in a new process, so that the memory is that of reading.

    Args:
        corpus: folder of the corpus.
        encoder: the encoder's config.
        steps: number of batches to read after the first.
        batch_size: number of examples in a batch.
        max_length: longest input; longer texts are cut [tokens].

    Raises:
        UserError: the corpus or the encoder cannot be read.
    """
    import psutil

    from src.data.batches import BatchNeeds, StepBatches, TaskExamples
    from src.data.corpus import load_corpus
    from src.data.tokenise import tokenised_as_read
    from src.encoders.text_encoder import TextEncoder
    from src.objectives.masked_lm import MaskedLM

    loaded: TextEncoder = build(encoder, "encoder").load()
    collate = MaskedLM().collate(loaded, batch_size)
    memory = psutil.Process().memory_info()
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
    return ReadRow(
        examples=len(texts),
        start=first - began,
        read=steps * batch_size,
        seconds=seconds,
        before=memory.rss - getattr(memory, "shared", 0),
        peak=peak.largest,
        mapped=peak.mapped,
    )
