"""The cost of building a corpus, and of reading it for training."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from src.bench.made_up_articles import FIELD
from src.bench.resident import Watch
from src.configuration.build import build
from src.data.corpus_manifest import read_corpus_folder
from src.errors import UserError


@dataclass(frozen=True)
class BuildRow:
    """A build.

    Attributes:
        articles: read.
        made: examples before repeats were left out.
        kept: examples of the corpus.
        bytes: of the corpus.
        seconds: of the whole command.
        resumed: whether an earlier command had begun, so that `seconds` is a part only.
        largest: peak of one process's own memory, in bytes.
        all: of all processes' together.
    """

    workers: int
    articles: int
    made: int
    kept: int
    bytes: int
    seconds: float
    resumed: bool
    largest: int
    all: int


@dataclass(frozen=True)
class ReadRow:
    """Reading batches of a whole corpus.

    Attributes:
        examples: of the corpus.
        start: seconds from naming the folder to the first batch.
        read: examples that were read after it.
        seconds: that this took.
        before: the process's own memory before the corpus was named, in bytes.
        peak: its largest since.
        mapped: pages of files, the corpus' among them.
    """

    examples: int
    start: float
    read: int
    seconds: float
    before: int
    peak: int
    mapped: int


def measure_build(
    articles: Path, corpus: Path, workers: int, options: Sequence[str] = ("decontaminate=null",)
) -> BuildRow:
    """Run the command that builds a corpus of the articles' most frequent field.

    Args:
        workers: processes of the build.
        options: more of the command's options.

    Raises:
        UserError: it fails; holds its last line.
    """
    resumed = (corpus / "building").is_dir()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "src.build_corpus", f"sources={articles}", f"output={corpus}",
         f"field_of_study=[{FIELD}]", f"executor.workers={workers}", *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with Watch(process.pid) as held:
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
        largest=held.largest,
        all=held.all,
    )


def measure_reading(
    corpus: Path, encoder: dict[str, Any], steps: int, batch_size: int, max_length: int
) -> ReadRow:
    """Read a masked-LM task's batches as a run does, without the model; in a fresh process.

    Raises:
        UserError: the corpus or the encoder cannot be read.
    """
    import psutil

    from src.data.batches import StepBatches, TaskExamples
    from src.data.corpus import load_corpus
    from src.data.tokenise import tokenised_as_read
    from src.encoders.text_encoder import TextEncoder
    from src.objectives.masked_lm import MaskedLM

    loaded: TextEncoder = build(encoder, "encoder").load()
    collate = MaskedLM().collate(loaded, batch_size)
    memory = psutil.Process().memory_info()
    with Watch() as held:
        began = time.perf_counter()
        texts = load_corpus(corpus, "text", corpus).texts
        rows = tokenised_as_read(texts, loaded.tokenizer, max_length)
        task = TaskExamples(rows, collate, batch_size)
        batches = StepBatches({"dapt": task}, None, steps + 1, 0, "joint")
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
        peak=held.largest,
        mapped=held.mapped,
    )
