"""Predicts a label for each text in a file and writes the predictions to another file.

`OUTPUT.unfinished` keeps the probabilities of each chunk as soon as it is predicted. After an
interruption, the same command reads the input and writes the output anew, and predicts the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from tartan.data.labelled import Columns, columns_to_predict, read_trained_columns, text_of
from tartan.data.table import Chunk, Table
from tartan.data.table_file import TABLES, Format, Quoting, format_of, open_table, open_text
from tartan.encoders.saved_classifier import load_classifier
from tartan.errors import UserError, printable
from tartan.files import disk_advice, process_lock, sha256_of, write_durably
from tartan.predict.predictor import Predictor
from tartan.predict.writer import Writer
from tartan.runs.name import RESULT
from tartan.settings import Checked, Count, Length

STREAM = "-"
"""Name that stands for standard input or output."""
LATEST = "latest"
"""Value of `model` that asks for the classifier of the run that finished last."""


@dataclass(frozen=True)
class Settings(Checked):
    """The options of `conf/predict.yaml`, where each is explained."""

    model: str
    input: str
    output: str
    runs_dir: str = "runs"
    format: Literal["csv", "tsv", "jsonl"] = "jsonl"
    quoting: Quoting = "standard"
    text: str | None = None
    text_pair: str | None = None
    prefix: str = ""
    batch_size: Count = 32
    max_length: Length | None = None
    device: str = "auto"
    resume: bool = True
    overwrite: bool = False


class Predicted(NamedTuple):
    """Numbers of rows: all, by label, and those that an earlier process had predicted."""

    rows: int
    counts: dict[str, int]
    resumed: int


def predict_file(settings: Settings) -> Predicted:
    """Predict a label for each row of a file, or of standard input."""
    model = _model_folder(settings)
    target = None if settings.output == STREAM else Path(settings.output).expanduser()
    written_as = Format(settings.format) if target is None else _format_of_output(target)
    with ExitStack() as stack:
        table = _open(settings, stack)
        if target is not None:
            stack.enter_context(_locked(target, settings))
        classifier = load_classifier(model)
        trained = read_trained_columns(model)
        columns = columns_to_predict(table, settings.text, settings.text_pair, trained)
        length, limit = settings.max_length or classifier.max_length, classifier.max_positions
        if length is None or (limit is not None and length > limit):
            raise UserError(f"max_length={length}: the classifier reads at most {limit} tokens")
        automatic = "cuda" if torch.cuda.is_available() else "cpu"
        device = torch.device(automatic if settings.device == "auto" else settings.device)
        predictor = Predictor(classifier, device, settings.batch_size, length)
        writer = Writer(table, written_as, classifier.labels, settings.prefix)
        if target is None:
            with open(sys.stdout.fileno(), "wb", closefd=False) as out, writer.open(out):
                _predict(table, columns, predictor, writer, None)
            return Predicted(writer.counts.total(), writer.counts, 0)
        files = sorted(path for path in classifier.folder.iterdir() if path.is_file())
        content = [(path.name, sha256_of(path)) for path in files]
        options = (columns.text, columns.pair, settings.batch_size, length, str(device))
        with _unfinished(target).open("a+b") as file:
            unfinished = Unfinished(file, (content, options))

            def write(path: Path) -> None:
                with writer.open(str(path)):
                    _predict(table, columns, predictor, writer, unfinished)

            write_durably(target, write)
        _unfinished(target).unlink()
        return Predicted(writer.counts.total(), writer.counts, unfinished.resumed)


class Unfinished:
    """The probabilities of the chunks that were predicted so far, one chunk a line of a file.

    Args:
        file: the file, which is read from its start and appended to.
        settings: all that predictions depend on, except the input.

    Attributes:
        resumed: number of rows that were read from what was there before.
    """

    def __init__(self, file: IO[bytes], settings: Any) -> None:
        versions = [version(name) for name in ("torch", "transformers", "pyarrow")]
        self._settings = json.dumps([settings, versions])
        self._file, self.resumed = file, 0
        file.seek(0)

    def read(self, chunk: Chunk | None) -> np.ndarray | None:
        """Return the probabilities of the next chunk, or cut off what is torn and return None.

        Raises:
            UserError: they were made of another chunk, or with other settings.
        """
        start, line = self._file.tell(), self._file.readline().decode(errors="replace")
        content, _, checksum = line.rpartition(" ")
        if checksum != f"{_digest(content)}\n":
            self._file.truncate(start)
            return None
        key, probabilities = content.split()
        if chunk is None or key != self._key(chunk):
            raise UserError(
                f"{self._file.name} was begun with another input, model or other options; use the "
                "same, or start over with resume=false"
            )
        self.resumed += len(chunk.rows)
        return np.frombuffer(bytes.fromhex(probabilities), "f4").reshape(len(chunk.rows), -1)

    def append(self, chunk: Chunk, probabilities: np.ndarray) -> None:
        """Add a chunk: when this returns, it survives an interruption."""
        content = f"{self._key(chunk)} {probabilities.tobytes().hex()}"
        self._file.write(f"{content} {_digest(content)}\n".encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _key(self, chunk: Chunk) -> str:
        return _digest(self._settings + chunk.digest())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _predict(
    table: Table,
    columns: Columns,
    predictor: Predictor,
    writer: Writer,
    unfinished: Unfinished | None,
) -> None:
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task, done = bar.add_task("predicting", total=None), 0
        for chunk in table.chunks():
            probabilities = unfinished.read(chunk) if unfinished else None
            is_new = probabilities is None
            if probabilities is None:
                probabilities = _probabilities(chunk, columns, predictor)
            writer.write(chunk, probabilities)
            if unfinished and is_new:  # not before it was written, which may fail at a row
                unfinished.append(chunk, probabilities)
            done += len(chunk.rows)
            bar.update(task, description=f"predicting {done:,} rows")
        if unfinished:
            unfinished.read(None)  # nothing, unless the input has fewer rows than before


def _probabilities(chunk: Chunk, columns: Columns, predictor: Predictor) -> np.ndarray:
    texts, pairs = [text_of(row, columns.text) for row in chunk.rows], None
    if columns.pair is not None:
        pairs = [text_of(row, columns.pair) for row in chunk.rows]
    probabilities = predictor.predict(texts, pairs)
    finite = np.isfinite(probabilities).all(axis=1)
    if not finite.all():  # the first class is no default
        place = chunk.rows[int(finite.argmin())].place
        raise UserError(f"{place}: the classifier gives it no finite probabilities")
    return probabilities


@contextmanager
def _locked(target: Path, settings: Settings) -> Iterator[None]:
    """Lock an output file that may be written, until the `with` block ends."""
    lock, unfinished = target.with_name(f"{target.name}.lock"), _unfinished(target)
    with process_lock(lock, f"another process is writing {target}; wait for it"):
        try:  # inside, so that a lock that a kill has left is removed
            if not settings.resume:
                unfinished.unlink(missing_ok=True)
            if target.exists() and not settings.overwrite and not unfinished.exists():
                raise UserError(f"output={target} exists already; replace it with overwrite=true")
            with disk_advice(target.parent):
                yield
        finally:
            if unfinished.exists() and not unfinished.stat().st_size:
                unfinished.unlink()
            if not unfinished.exists():
                lock.unlink(missing_ok=True)


def _unfinished(target: Path) -> Path:
    return target.with_name(f"{target.name}.unfinished")


def _model_folder(settings: Settings) -> Path:
    """Return the folder that `model` names, or of the run that finished last, which is printed."""
    model, runs = Path(settings.model).expanduser(), Path(settings.runs_dir).expanduser()
    if settings.model != LATEST or model.exists():
        return model
    results = [r for r in runs.rglob(f"[!.]*/{RESULT}") if (r.parent / "classifier").is_dir()]
    if not results:
        raise UserError(f"model={LATEST}: no finished run with a classifier below {runs}")
    model = max(results, key=lambda result: result.stat().st_mtime_ns).parent
    stream = sys.stderr if settings.output == STREAM else sys.stdout
    print(printable(f"model {model}"), file=stream, flush=True)
    return model


def _format_of_output(target: Path) -> Format:
    written_as = format_of(target, ("csv", "tsv", "jsonl", "parquet"))
    if written_as is None or (written_as.kind == "parquet" and written_as.compression):
        raise UserError(f"output={target}: the name must end in .csv, .tsv, .jsonl or .parquet")
    return written_as


def _open(settings: Settings, stack: ExitStack) -> Table:
    """Open the input; standard input is copied to a temporary file, to be read twice."""
    if settings.input != STREAM:
        return open_table(Path(settings.input), (*TABLES, "text"), settings.quoting)
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "input"
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return open_text(copy, Format(settings.format), "standard input", settings.quoting)
