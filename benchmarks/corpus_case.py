"""Measures what it costs to build a corpus, and to read it for training."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.process_memory import peak_memory
from benchmarks.row import Row
from benchmarks.synthetic_articles import FIELD
from tartan.data.corpus_folder import read_corpus_folder
from tartan.errors import UserError
from tartan.settings import build, quoted

MIB = 1 << 20


@dataclass(frozen=True)
class BuildRow(Row):
    """The cost of a build.

    Attributes:
        kept: number of examples of the corpus.
        made: number of examples before repeats were removed.
        articles: number of articles that were read.
        seconds: time of the whole command [s].
        made_per_second: number of examples made in a second; None where the command resumed an
            earlier one, so that `seconds` is only a part.
        largest_mib: peak memory of one process, without pages of files [MiB].
        all_mib: peak memory of all processes together, likewise [MiB].
    """

    title = "building a corpus; peak memory without pages of files"
    kept: int
    made: int
    articles: int
    seconds: float
    made_per_second: float | None
    largest_mib: float
    all_mib: float


@dataclass(frozen=True)
class ReadRow(Row):
    """The cost of reading batches of a whole corpus.

    Attributes:
        examples: number of examples of the corpus.
        start: time from opening the folder to the first batch [s].
        read: number of examples that were read after the first batch.
        read_per_second: number of these in a second.
        peak_mib: peak memory of the process, without pages of files [MiB].
    """

    title = "reading random batches, without the model; memory without pages of files"
    examples: int
    start: float
    read: int
    read_per_second: float
    peak_mib: float


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
        [sys.executable, "-m", "tartan", "build-corpus", f"sources={quoted(articles)}",
         f"output={quoted(corpus)}",
         f"field_of_study=[{FIELD}]", f"executor.workers={workers}", *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with peak_memory(process.pid) as peak:
        _, errors = process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode != 0:
        raise UserError(f"the build failed: {(errors.strip().splitlines() or ['?'])[-1]}")
    counts = read_corpus_folder(corpus).manifest.counts
    return BuildRow(
        kept=counts["examples"]["kept"],
        made=counts["examples"]["made"],
        articles=counts["records"]["read"],
        seconds=seconds,
        made_per_second=None if resumed else counts["examples"]["made"] / seconds,
        largest_mib=peak.largest / MIB,
        all_mib=peak.all / MIB,
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
    from tartan.data.batches import BatchNeeds, StepBatches, TaskExamples
    from tartan.data.corpus import load_corpus
    from tartan.data.tokenise import tokenised_as_read
    from tartan.encoders.text_encoder import TextEncoder
    from tartan.objectives.masked_lm import MaskedLM

    loaded: TextEncoder = build(encoder, "encoder").load()
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
    return ReadRow(
        examples=len(texts),
        start=first - began,
        read=steps * batch_size,
        read_per_second=steps * batch_size / seconds,
        peak_mib=peak.largest / MIB,
    )
