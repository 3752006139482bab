"""Predicts a label for each text in a file and writes the predictions to another file.

`OUTPUT.unfinished` keeps probabilities as soon as they are predicted. After an interruption, the
same command reads the input and writes the output anew, and predicts the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
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
from tartan.data.table import Row, Table
from tartan.data.table_file import TABLES, Format, Quoting, format_of, open_table, open_text
from tartan.data.tokenise import encode_texts
from tartan.encoders.saved_classifier import SavedClassifier, load_classifier
from tartan.errors import UserError, printable
from tartan.files import disk_advice, process_lock, sha256_of, write_durably
from tartan.predict.writer import Writer
from tartan.runs.folder import RESULT
from tartan.settings import Checked, Count, Length

STREAM = "-"
"""Name that stands for standard input or output."""
_AT_ONCE = 1000
"""Number of texts that are tokenised together."""
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


class Predictor:
    """A classifier that predicts in float32; batches change its results by rounding only.

    `batch_size` texts go through it at once, each cut after `max_length` tokens as in training.
    """

    def __init__(
        self, classifier: SavedClassifier, device: torch.device, batch_size: int, max_length: int
    ) -> None:
        self._classifier, self._device = classifier, device
        self._batch_size, self._max_length = batch_size, max_length
        classifier.model.to(device)

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """Return the probabilities of all labels for each text, float32 `(texts, classes)`."""
        columns = [texts] if pairs is None else [texts, pairs]
        probabilities = np.empty((len(texts), len(self._classifier.labels)), dtype=np.float32)
        for start in range(0, len(texts), _AT_ONCE):
            portion = slice(start, start + _AT_ONCE)
            probabilities[portion] = self._predict([list(column[portion]) for column in columns])
        return probabilities

    def _predict(self, columns: list[list[str]]) -> np.ndarray:
        tokenizer = self._classifier.tokenizer
        types = "token_type_ids" in tokenizer.model_input_names
        encoded = encode_texts(columns, tokenizer, self._max_length, types)
        # texts of similar length together, which saves padding
        order = sorted(range(len(columns[0])), key=lambda i: -len(encoded["input_ids"][i]))
        probabilities = np.empty((len(order), len(self._classifier.labels)), dtype=np.float32)
        for start in range(0, len(order), self._batch_size):
            members = order[start : start + self._batch_size]
            batch = {name: [values[i] for i in members] for name, values in encoded.items()}
            padded = tokenizer.pad(batch, return_tensors="pt").to(self._device)
            logits = self._classifier.logits(padded)
            probabilities[members] = torch.softmax(logits.float(), dim=1).cpu().numpy()
        return probabilities


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
        # read once before, so that a flaw is found before hours of predictions
        rows = sum(len(_texts(chunk, columns)[0]) for chunk in table.chunks())
        if target is None:
            with open(sys.stdout.fileno(), "wb", closefd=False) as out, writer.open(out):
                _predict(table, rows, columns, predictor, writer, None)
            return Predicted(rows, writer.counts, 0)
        files = sorted(path for path in classifier.folder.iterdir() if path.is_file())
        content = [(path.name, sha256_of(path)) for path in files]
        read = (table.fingerprint, settings.quoting, columns.text, columns.pair)
        options = (*read, settings.batch_size, length, str(device))
        with _unfinished(target).open("a+b") as file:
            unfinished = Unfinished(file, (content, options), len(classifier.labels))

            def write(path: Path) -> None:
                with writer.open(str(path)):
                    _predict(table, rows, columns, predictor, writer, unfinished)

            write_durably(target, write)
        _unfinished(target).unlink()
        return Predicted(rows, writer.counts, unfinished.resumed)


class Unfinished:
    """The probabilities of the rows that were predicted so far: float32, behind a line.

    The line is a digest of `made_of`: all that predictions depend on. `resumed` is the number of
    rows that were read from what was there before.
    """

    def __init__(self, file: IO[bytes], made_of: Any, labels: int) -> None:
        self._file, self._labels, self.resumed = file, labels, 0
        versions = [version(name) for name in ("torch", "transformers")]
        key = hashlib.sha256(json.dumps([made_of, versions]).encode()).hexdigest()
        file.seek(0)
        begun = file.readline()
        if not begun.endswith(b"\n"):  # it is new, or was interrupted here
            file.truncate(0)
            file.write(f"{key}\n".encode())
        elif begun != f"{key}\n".encode():
            raise UserError(
                f"{file.name} was begun with another input, model or other options; use the same, "
                "or start over with resume=false"
            )

    def read(self, rows: int) -> np.ndarray | None:
        """Return the probabilities of the next rows, or cut off what is torn and return None."""
        start = self._file.tell()
        content = self._file.read(4 * rows * self._labels)
        if len(content) == 4 * rows * self._labels:
            found = np.frombuffer(content, "f4").reshape(rows, -1)
            if np.allclose(found.sum(axis=1), 1, atol=1e-3):  # a power cut may leave zeros
                self.resumed += rows
                return found
        self._file.truncate(start)
        return None

    def append(self, probabilities: np.ndarray) -> None:
        """Add rows: when this returns, they survive an interruption."""
        self._file.write(probabilities.tobytes())
        self._file.flush()
        os.fsync(self._file.fileno())


def _texts(chunk: Sequence[Row], columns: Columns) -> tuple[list[str], list[str] | None]:
    texts = [text_of(row, columns.text) for row in chunk]
    if columns.pair is None:
        return texts, None
    return texts, [text_of(row, columns.pair) for row in chunk]


def _predict(
    table: Table,
    rows: int,
    columns: Columns,
    predictor: Predictor,
    writer: Writer,
    unfinished: Unfinished | None,
) -> None:
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("predicting", total=rows)
        for chunk in table.chunks():
            probabilities = unfinished.read(len(chunk)) if unfinished else None
            if probabilities is None:
                probabilities = predictor.predict(*_texts(chunk, columns))
                finite = np.isfinite(probabilities).all(axis=1)
                if not finite.all():  # the first class is no default
                    place = chunk[int(finite.argmin())].place
                    raise UserError(f"{place}: the classifier gives it no finite probabilities")
                if unfinished:
                    unfinished.append(probabilities)
            writer.write(chunk, probabilities)
            bar.advance(task, len(chunk))


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
    print(printable(f"model {model}"), file=sys.stderr, flush=True)
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
