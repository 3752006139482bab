"""Joins rows with their predictions and writes them as CSV, TSV, JSON lines or Parquet."""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tartan.data.kinds import kind_of_problem
from tartan.data.table import Format, Row, Table
from tartan.data.thresholds import read_thresholds
from tartan.encoders.saved_classifier import SavedClassifier
from tartan.errors import UserError


class Writer:
    """Adds the columns `predicted_label` and `probability_LABEL`, one a label, to a table's chunks.

    A row whose highest probability is below `min_score` gets no predicted label. Other kinds of end
    task have other columns. Several labels of a text are a list, in CSV and TSV joined by a
    `separator` that stands between them where they come from.

    Attributes:
        counts: number of rows by predicted label, in the classifier's order.
        abstained: number of rows without one.
    """

    def __init__(
        self,
        table: Table,
        target: Format,
        classifier: SavedClassifier,
        prefix: str,
        min_score: float | None = None,
        separator: str | None = None,
    ) -> None:
        labels, self._kind = classifier.labels, kind_of_problem(classifier.problem_type)
        self._thresholds = read_thresholds(classifier.folder, labels)
        self.counts = Counter(dict.fromkeys(labels, 0))
        self.abstained, self._min_score = 0, min_score
        self._labels, self._target = labels, target
        self._joined_by = separator if target.kind in ("csv", "tsv") else None
        scores = [f"{prefix}{self._kind.score_column.format(label)}" for label in labels]
        predicted = self._kind.predicted_column
        self._added = [*([] if predicted is None else [f"{prefix}{predicted}"]), *scores]
        self._check_free(table.columns, table.source)
        self._columns = [*table.columns, *self._added]
        self._separator = "\t" if target.kind == "tsv" else ","
        if target.kind == "csv" and table.separator not in (None, "\t"):
            self._separator = table.separator
        if table.schema is not None:
            first = pa.list_(pa.string()) if self._kind.lists_labels else pa.string()
            types = [first] * (predicted is not None) + [pa.float32() for _ in labels]
            fields = [*table.schema, *map(pa.field, self._added, types)]
            self._schema = pa.schema(fields, table.schema.metadata)
        elif target.kind == "parquet":
            raise UserError(f"{table.source} has no types for Parquet; name a .jsonl or .csv")

    @contextmanager
    def open(self, path: str) -> Iterator[None]:
        """Begin the output, and end it when the `with` block ends."""
        if self._target.kind == "parquet":
            with pq.ParquetWriter(path, self._schema) as self._file:
                yield
            return
        with pa.output_stream(path, compression=self._target.compression) as self._file:
            if self._target.kind != "jsonl":
                self._write_csv([self._columns])
            yield

    def write(self, rows: Sequence[Row], scores: np.ndarray) -> list[Any]:
        """Write rows with their scores, float32 `(rows, labels)`.

        Returns:
            The predicted labels.
        """
        kind = self._kind
        predicted = kind.predicted(scores, self._labels, self._thresholds)
        if self._min_score is not None:
            sure = scores.max(axis=1) >= self._min_score
            predicted = [label if s else None for label, s in zip(predicted, sure, strict=True)]
        self.counts.update(chain(*(kind.names(label) for label in predicted if label is not None)))
        self.abstained += predicted.count(None)
        records = []
        for row, label, values in zip(rows, predicted, scores, strict=True):
            self._check_free(row.values, row.place)
            # as few digits as give the same float32 back
            numbers = [float(str(value)) for value in values]
            if kind.lists_labels and self._joined_by is not None:
                label = kind.shown(label, self._joined_by)
            own = numbers if kind.predicted_column is None else [label, *numbers]
            records.append({**row.values, **dict(zip(self._added, own, strict=True))})
        if self._target.kind == "parquet":
            self._file.write_table(pa.Table.from_pylist(records, self._schema))
        elif self._target.kind == "jsonl":
            self._file.write("".join(f"{_as_json(record)}\n" for record in records).encode())
        else:
            for row in rows:
                if others := row.values.keys() - set(self._columns):
                    raise UserError(
                        f"{row.place}: the first rows have no {min(others)}; name an output that "
                        "ends in .jsonl"
                    )
            self._write_csv([record.get(name) for name in self._columns] for record in records)
        return predicted

    def _write_csv(self, rows: Iterable[Sequence[Any]]) -> None:
        lines: list[str] = []
        # With this line end a field that holds either of its characters is quoted.
        file: Any = SimpleNamespace(write=lines.append)
        writer = csv.writer(file, delimiter=self._separator, lineterminator="\r\n")
        writer.writerows(map(_as_text, rows))
        self._file.write("".join(f"{line[:-2]}\n" for line in lines).encode())

    def _check_free(self, columns: Iterable[str], place: str) -> None:
        if taken := set(self._added).intersection(columns):
            raise UserError(f"{place}: there is a column {min(taken)} already; use prefix=PREFIX")


def _as_json(row: dict[str, Any]) -> str:
    """Return a row as JSON, with null for numbers that JSON has not: NaN and infinities."""
    try:
        return json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(row, default=str)
        return json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)


def _as_text(values: Iterable[Any]) -> list[str]:
    """Return fields of CSV: null as nothing, lists, mappings and numbers as in JSON."""
    return [
        "" if value is None
        else json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, bool | int | float | list | dict)
        else str(value)
        for value in values
    ]  # fmt: skip
