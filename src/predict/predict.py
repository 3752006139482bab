"""From texts in a file to a file of predictions."""

from __future__ import annotations

import hashlib
import importlib.metadata
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from src.configuration.checks import check_whole
from src.data.columns import Columns, columns_to_predict, read_trained
from src.data.labelled import text_of
from src.data.table.base import CHUNK_CHARACTERS, CHUNK_ROWS, Chunk, Table
from src.data.table.formats import STREAM
from src.data.table.open import open_lines, open_table
from src.encoders.saved_classifier import SavedClassifier, load_classifier
from src.errors import UserError
from src.files.checksum import sha256_of
from src.files.durable import disk_advice
from src.predict.output import FileOutput, Output, StandardOutput, alone_at, check_target
from src.predict.predictor import Predictor, check_finite, device_of
from src.predict.progress import Progress
from src.predict.writers import Added, Writer, formats_of, writer_for


@dataclass(frozen=True)
class Settings:
    """The options of `conf/predict.yaml`, which says what each is."""

    model: str
    input: str
    output: str
    format: str | None = None
    text: str | None = None
    text_pair: str | None = None
    prefix: str = ""
    batch_size: int = 32
    max_length: int | None = None
    device: str = "auto"
    resume: bool = True
    overwrite: bool = False


@dataclass(frozen=True)
class Done:
    """What was predicted.

    Attributes:
        rows: how many rows.
        counts: of them, by label; in the classifier's order.
        resumed: rows that an earlier process had written.
    """

    rows: int
    counts: dict[str, int]
    resumed: int


def predict_file(settings: Settings) -> Done:
    """Predict a label for each row of a file, or of standard input.

    Raises:
        UserError: an option, the classifier, a file or a row of it is not as it has to be.
    """
    check_whole(settings.batch_size, "batch_size", least=1)
    source, target = formats_of(settings.input, settings.output, settings.format)
    device = device_of(settings.device)
    with ExitStack() as stack:
        path = None if settings.output == STREAM else Path(settings.output).expanduser()
        if path is not None:
            check_target(path, settings.overwrite)
            if settings.input != STREAM and _same_file(path, Path(settings.input).expanduser()):
                raise UserError("input and output are the same file; name another output")
            stack.enter_context(alone_at(path))
            stack.enter_context(disk_advice(path))
        classifier = load_classifier(Path(settings.model).expanduser())
        max_length = _max_length(settings, classifier)
        added = Added.named(classifier.labels, settings.prefix)
        is_stream = settings.input == STREAM
        table = open_lines(None, source) if is_stream else open_table(Path(settings.input))
        trained = read_trained(Path(settings.model).expanduser())
        columns = columns_to_predict(table, settings.text, settings.text_pair, trained)
        if table.entry == "column":  # of JSON, each row has fields of its own
            added.check_free(table.columns, table.source)
        writer = writer_for(table, source, target, added)
        output: Output
        if path is None:
            output = StandardOutput(writer)
        else:
            recorded = {
                **_recorded(settings, classifier),
                "max_length": max_length,
                "device": str(device),
                "columns": [columns.text, columns.pair],
                "format": [source.kind, target.kind, target.compression],
            }
            output = FileOutput(path, writer, recorded, settings.resume)
        predictor = Predictor(classifier, device, settings.batch_size, max_length)
        work = Work(table, columns, added, writer, output)
        return work.done_by(predictor, classifier.labels)


@dataclass(frozen=True)
class Work:
    """What is read, and where it goes."""

    table: Table
    columns: Columns
    added: Added
    writer: Writer
    output: Output

    def done_by(self, predictor: Predictor, labels: tuple[str, ...]) -> Done:
        """Predict all rows that are not yet written."""
        output, begun = self.output, self.output.rows
        if not output.is_complete:
            with Progress(self.table, begun) as progress:
                for chunk in self.table.chunks(output.place):
                    if self.table.entry == "field":
                        for row in chunk.rows:
                            self.added.check_free(row.values, self.table.where(row.number))
                    texts = self._texts(chunk, self.columns.text)
                    pair = self.columns.pair
                    pairs = None if pair is None else self._texts(chunk, pair)
                    predictions = predictor.predict(texts, pairs)
                    check_finite(predictions.probabilities, output.rows)
                    content = self.writer.encode(chunk, predictions)
                    output.append(content, predictions.labels, chunk.place)
                    progress.show(output.rows)
        output.finish()
        return Done(output.rows, {label: output.counts[label] for label in labels}, begun)

    def _texts(self, chunk: Chunk, column: str) -> list[str]:
        return [text_of(self.table, row, column) for row in chunk.rows]


def _same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _max_length(settings: Settings, classifier: SavedClassifier) -> int:
    length = settings.max_length or classifier.max_length
    if length is None:
        raise UserError("the classifier does not say its longest input: max_length=TOKENS")
    check_whole(length, "max_length", least=8)
    limit = classifier.max_positions
    if limit is not None and length > limit:
        raise UserError(f"max_length={length} is more than the {limit} tokens that it can read")
    return length


def _recorded(settings: Settings, classifier: SavedClassifier) -> dict[str, Any]:
    """What the bytes of the output depend on, apart from the input."""
    digest = hashlib.sha256()
    for path in sorted(classifier.folder.iterdir()):
        if path.suffix in (".safetensors", ".json"):
            digest.update(f"{path.name} {sha256_of(path)}\n".encode())
    return {
        "model": digest.hexdigest(),
        "text": settings.text,
        "text_pair": settings.text_pair,
        "prefix": settings.prefix,
        "batch_size": settings.batch_size,
        "chunk": [CHUNK_ROWS, CHUNK_CHARACTERS],
        "versions": {
            name: importlib.metadata.version(name) for name in ("torch", "transformers", "pyarrow")
        },
    }
