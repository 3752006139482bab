"""Predicts a label for each text in a file and writes the predictions to another file."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
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
from tartan.data.table.open import (
    COLUMNAR,
    TABLES,
    Format,
    endings_of,
    format_of,
    open_table,
    open_text,
)
from tartan.data.table.text import Quoting
from tartan.encoders.saved_classifier import SavedClassifier, load_classifier
from tartan.errors import UserError, printable
from tartan.files import sha256_of, write_durably
from tartan.predict.output import UnfinishedPredictions, exclusive_output, unfinished_file
from tartan.predict.predictor import Predictor, device_of
from tartan.predict.writer import Writer
from tartan.runs.name import RESULT
from tartan.settings import Checked, Count, Length

STREAM = "-"
"""Name that stands for standard input or output."""
LATEST = "latest"
"""Value of `model` that asks for the classifier of the run that finished last."""
_Streamed = Literal["csv", "tsv", "jsonl"]
_STREAMED = get_args(_Streamed)
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
    quoting: Quoting = "standard"
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
    """Predict a label for each row of a file, or of standard input."""
    device = device_of(settings.device)
    model = _model_folder(settings)
    target = None if settings.output == STREAM else Path(settings.output).expanduser()
    written_as = None if target is None else _format_of_output(target)
    with ExitStack() as stack:
        table, written_as = _open(settings, written_as, stack)
        if target is not None:
            if target.exists() and table.path is not None and table.path.samefile(target):
                raise UserError("input and output are the same file; name another output")
            stack.enter_context(exclusive_output(target, settings.resume, settings.overwrite))
        classifier = load_classifier(model)
        trained = read_trained_columns(model)
        columns = columns_to_predict(table, settings.text, settings.text_pair, trained)
        writer = Writer(table, written_as, classifier.labels, settings.prefix)
        recorded = _recorded(settings, classifier, columns, device)
        predictor = Predictor(classifier, device, settings.batch_size, recorded["max_length"])
        if target is None:
            unfinished = None
            for content in writer.lines(_predicted_rows(table, columns, predictor, None)):
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
        else:
            unfinished = UnfinishedPredictions(target, recorded, settings.resume)
            rows = _predicted_rows(table, columns, predictor, unfinished)
            write_durably(target, partial(writer.write, rows))
            unfinished_file(target).unlink(missing_ok=True)
    counts = {label: writer.counts[label] for label in classifier.labels}
    return Predicted(counts, unfinished.rows if unfinished else 0)


def _model_folder(settings: Settings) -> Path:
    """Return the folder that `model` names, or of the run that finished last, which is printed."""
    model, runs = Path(settings.model).expanduser(), Path(settings.runs_dir).expanduser()
    if settings.model != LATEST or model.exists():
        return model
    results = [
        result
        for result in runs.rglob(RESULT)
        if (result.parent / "classifier").is_dir()
        and not any(name.startswith(".") for name in result.relative_to(runs).parts)
    ]
    if not results:
        raise UserError(
            f"model={LATEST}: no finished run with a classifier below {runs}; name its folder, or "
            "the folder of runs: runs_dir=FOLDER"
        )
    model = max(results, key=lambda result: result.stat().st_mtime_ns).parent
    stream = sys.stderr if settings.output == STREAM else sys.stdout
    print(printable(f"model {model}"), file=stream, flush=True)
    return model


def _open(settings: Settings, written_as: Format | None, stack: ExitStack) -> tuple[Table, Format]:
    """Open the input; standard input is copied to a temporary file, to be read twice.

    Returns:
        The table, and the output's format, which is the input's where it has no file name.
    """
    if settings.input != STREAM:
        source = Path(settings.input).expanduser()
        table = open_table(source, (*TABLES, "text"), settings.quoting)
        stated = settings.format
        return table, written_as or _format_of_stream(stated, format_of(source, TABLES))
    read_as = _format_of_stream(settings.format, written_as)
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "input"
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    table = open_text(copy, read_as, "standard input", settings.quoting)
    return table, written_as or read_as


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
            if (chunk := next(chunks, None)) is None or chunk.digest() != digest:
                raise UserError(
                    f"{table.source} has changed since its first rows were predicted; put it back, "
                    "or start over with resume=false"
                )
            yield chunk, probabilities
            done += len(chunk.rows)
        for chunk in chunks:
            texts, pairs = [text_of(row, columns.text) for row in chunk.rows], None
            if columns.pair is not None:
                pairs = [text_of(row, columns.pair) for row in chunk.rows]
            probabilities = predictor.predict(texts, pairs)
            finite = np.isfinite(probabilities).all(axis=1)
            if not finite.all():  # the first class is no default
                raise UserError(
                    f"row {done + int(finite.argmin()) + 1:,}: the classifier gives it no finite "
                    "probabilities; its weights are damaged, or its training diverged"
                )
            yield chunk, probabilities
            if unfinished:  # not before it was written, which may fail at one of its rows
                unfinished.append(chunk.digest(), probabilities)
            done += len(chunk.rows)
            read, total = table.progress()
            bar.update(task, completed=read, total=total, description=f"predicting {done:,} rows")


def _recorded(
    settings: Settings, classifier: SavedClassifier, columns: Columns, device: torch.device
) -> dict[str, Any]:
    """Return everything that predictions depend on, apart from the input."""
    digest = hashlib.sha256()
    for path in sorted(classifier.folder.iterdir()):
        if path.suffix in _OF_MODEL and path.is_file():
            digest.update(f"{path.name} {sha256_of(path)}\n".encode(errors="surrogateescape"))
    length, limit = settings.max_length or classifier.max_length, classifier.max_positions
    if length is None:
        raise UserError("the classifier does not say its longest input: max_length=TOKENS")
    if limit is not None and length > limit:
        raise UserError(f"max_length={length} is more than the {limit} tokens that it can read")
    return {
        "model": digest.hexdigest(),
        "columns": [columns.text, columns.pair],
        "batch_size": settings.batch_size,
        "max_length": length,
        "device": str(device),
        "chunk": [CHUNK_ROWS, CHUNK_CHARACTERS],
        "versions": {name: version(name) for name in ("torch", "transformers", "pyarrow")},
    }
