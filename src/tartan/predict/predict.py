"""Predicts a label for each text in a file and writes the predictions to another file."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from tartan.data.columns import Columns, columns_to_predict, read_trained_columns
from tartan.data.labelled import text_of
from tartan.data.table.base import CHUNK_CHARACTERS, CHUNK_ROWS, Chunk, Table
from tartan.data.table.formats import COLUMNAR, TABLES, Format, endings_of, format_of
from tartan.data.table.open import open_lines, open_table
from tartan.encoders.saved_classifier import SavedClassifier, load_classifier
from tartan.errors import UserError, printable
from tartan.files import sha256_of, write_durably
from tartan.predict.latest import LATEST, latest_run, newer_unfinished
from tartan.predict.output import UnfinishedPredictions, exclusive_output, unfinished_file
from tartan.predict.predictor import Predictor, device_of
from tartan.predict.writer import Writer
from tartan.settings import Checked, Count, Length

STREAM = "-"
"""Name that stands for standard input or output."""
_Streamed = Literal["csv", "tsv", "jsonl"]
_STREAMED = get_args(_Streamed)
_READ = (*TABLES, "text")
"""Kinds of files that texts are read from."""
_OF_MODEL = (".safetensors", ".json", ".txt", ".model")
"""Endings of the files that hold weights, configurations and vocabularies."""


@dataclass(frozen=True)
class Settings(Checked):
    """The options of `conf/predict.yaml`, where each is explained."""

    model: str
    input: str
    output: str
    runs_dir: str = "runs"
    format: _Streamed | None = None
    text: str | None = None
    text_pair: str | None = None
    prefix: str = ""
    batch_size: Count = 32
    max_length: Length | None = None
    device: str = "auto"
    resume: bool = True
    overwrite: bool = False


@dataclass(frozen=True)
class Predicted:
    """A summary of what was predicted.

    Attributes:
        counts: number of rows of each label, in the classifier's order.
        resumed: number of rows that an earlier process had predicted.
    """

    counts: dict[str, int]
    resumed: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.counts.values())


def predict_file(settings: Settings) -> Predicted:
    """Predict a label for each row of a file, or of standard input.

    Raises:
        UserError: an option, the classifier, or the input is invalid.
    """
    device = device_of(settings.device)
    source, target, model, runs = (
        Path(path).expanduser()
        for path in (settings.input, settings.output, settings.model, settings.runs_dir)
    )
    if settings.model == LATEST and not model.exists():
        model = latest_run(runs)
        stream = sys.stderr if settings.output == STREAM else sys.stdout
        newer = newer_unfinished(model, runs)
        but = "" if newer is None else f" (a newer run is unfinished: {newer})"
        print(printable(f"model {model}{but}"), file=stream, flush=True)
    path = None if settings.output == STREAM else target
    if settings.format is not None and STREAM not in (settings.input, settings.output):
        raise UserError(
            f"format={settings.format} is for input=- and output=-; the names of files tell theirs"
        )
    written_as = None if path is None else _format_of_output(path)
    if settings.input != STREAM:
        table = open_table(source, _READ)  # before the output is looked at: it is named first
    with exclusive_output(path, settings.resume, settings.overwrite) if path else nullcontext():
        if path is not None and path.exists() and source.exists() and source.samefile(path):
            raise UserError("input and output are the same file; name another output")
        if settings.input == STREAM:
            table = open_lines(None, _format_of_stream(settings.format, written_as))
        if written_as is None:
            written_as = _format_of_stream(settings.format, format_of(source, TABLES))
        classifier = load_classifier(model)
        trained = read_trained_columns(model)
        columns = columns_to_predict(table, settings.text, settings.text_pair, trained)
        writer = Writer(table, written_as, classifier.labels, settings.prefix)
        recorded = _recorded(settings, classifier, columns, device)
        unfinished = (
            None if path is None else UnfinishedPredictions(path, recorded, settings.resume)
        )
        predictor = Predictor(classifier, device, settings.batch_size, recorded["max_length"])
        rows = _predicted_rows(table, columns, predictor, unfinished)
        if path is None:
            for content in writer.lines(rows):
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
        else:
            write_durably(path, partial(writer.write, rows))
            unfinished_file(path).unlink(missing_ok=True)
    counts = {label: writer.counts[label] for label in classifier.labels}
    return Predicted(counts, unfinished.rows if unfinished else 0)


def _format_of_output(path: Path) -> Format:
    found = format_of(path, (*_STREAMED, *COLUMNAR))
    if found is None or (found.kind in COLUMNAR and found.compression):
        raise UserError(
            f"output={path}: the name must end in {endings_of(_STREAMED)}; or in .parquet or .arrow"
        )
    return found


def _format_of_stream(stated: str | None, other: Format | None) -> Format:
    """Return the format of standard input or output: as stated, or that of the other of the two."""
    kind = stated or (other.kind if other else "")
    kind = "jsonl" if kind == "json" else kind
    if kind not in _STREAMED:
        raise UserError(
            f"input=- and output=- need a format of text lines: format={'|'.join(_STREAMED)}"
        )
    return Format(kind)


def _predicted_rows(
    table: Table, columns: Columns, predictor: Predictor, unfinished: UnfinishedPredictions | None
) -> Iterator[tuple[Chunk, np.ndarray]]:
    """Yield chunks with their probabilities: first unfinished ones, then new ones."""
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task, done = bar.add_task("predicting"), 0
        chunks = table.chunks()
        for digest, probabilities in unfinished.read() if unfinished else ():
            if (chunk := next(chunks, None)) is None or table.digest(chunk) != digest:
                raise UserError(
                    f"{table.source} has changed since its first rows were predicted; put it back, "
                    "or start over with resume=false"
                )
            yield chunk, probabilities
            done += len(chunk.rows)
        for chunk in chunks:
            texts, pairs = [text_of(table, row, columns.text) for row in chunk.rows], None
            if columns.pair is not None:
                pairs = [text_of(table, row, columns.pair) for row in chunk.rows]
            probabilities = predictor.predict(texts, pairs)
            finite = np.isfinite(probabilities).all(axis=1)
            if not finite.all():  # the first class is no default
                raise UserError(
                    f"row {done + int(finite.argmin()) + 1:,}: the classifier gives it no finite "
                    "probabilities; its weights are damaged, or its training diverged. The rows "
                    "before are kept"
                )
            yield chunk, probabilities
            if unfinished:  # not before it was written, which may fail at one of its rows
                unfinished.append(table.digest(chunk), probabilities)
            done += len(chunk.rows)
            read, total = table.progress()
            bar.update(task, completed=read, total=total, description=f"predicting {done:,} rows")


def _max_length(settings: Settings, classifier: SavedClassifier) -> int:
    length = settings.max_length or classifier.max_length
    if length is None:
        raise UserError("the classifier does not say its longest input: max_length=TOKENS")
    limit = classifier.max_positions
    if limit is not None and length > limit:
        raise UserError(f"max_length={length} is more than the {limit} tokens that it can read")
    return length


def _recorded(
    settings: Settings, classifier: SavedClassifier, columns: Columns, device: torch.device
) -> dict[str, Any]:
    """Return everything that predictions depend on, apart from the input."""
    digest = hashlib.sha256()
    for path in sorted(classifier.folder.iterdir()):
        if path.suffix in _OF_MODEL and path.is_file():
            digest.update(f"{path.name} {sha256_of(path)}\n".encode(errors="surrogateescape"))
    return {
        "model": digest.hexdigest(),
        "columns": [columns.text, columns.pair],
        "batch_size": settings.batch_size,
        "max_length": _max_length(settings, classifier),
        "device": str(device),
        "chunk": [CHUNK_ROWS, CHUNK_CHARACTERS],
        "versions": {name: version(name) for name in ("torch", "transformers", "pyarrow")},
    }
