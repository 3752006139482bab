"""Rows of Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from src.errors import UserError
from src.predict import chunks
from src.predict.chunks import Chunk
from src.predict.columns import Added, Wanted


class ParquetRows:
    """A Parquet file, a part of a row group at a time.

    Attributes:
        schema: its columns.
    """

    def __init__(self, path: Path, wanted: Wanted, added: Added) -> None:
        self._path = path
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise UserError(f"{path}: cannot be read as Parquet ({reason})") from error
        self.schema: pa.Schema = self._file.schema_arrow
        names = list(self.schema.names)
        repeated = [name for i, name in enumerate(names) if name in names[:i]]
        if repeated:
            raise UserError(f"{path}: two columns are named {repeated[0]!r}")
        texts = [field.name for field in self.schema if _is_text(field.type)]
        self._found = wanted.found_in(names, texts, str(path))
        added.check_free(names, str(path))
        self._rows = 0

    def chunks(self, after: dict[str, Any] | None) -> Iterator[Chunk[pa.Table]]:
        done = 0
        if after is not None:
            if after["digest"] != self._digest():
                raise UserError(
                    f"{self._path} has changed since its first rows were predicted; put it back, "
                    "or start over with resume=false"
                )
            done = int(after["row"])
        digest = self._digest()
        for group in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(group).num_rows
            if self._rows + size <= done:
                self._rows += size
                continue
            for batch in self._batches(group):
                first, self._rows = self._rows, self._rows + batch.num_rows
                if self._rows <= done:
                    continue
                table = pa.Table.from_batches([batch], self.schema)
                pair = self._found.pair
                yield Chunk(
                    self._texts(table, self._found.text, first),
                    None if pair is None else self._texts(table, pair, first),
                    table,
                    {"row": self._rows, "digest": digest},
                )

    def progress(self) -> tuple[int, int | None]:
        return self._rows, int(self._file.metadata.num_rows)

    def close(self) -> None:
        self._file.close()

    def _batches(self, group: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._file.iter_batches(chunks.CHUNK_ROWS, row_groups=[group])
        except (pa.ArrowException, OSError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise UserError(f"{self._path}: damaged after row {self._rows} ({reason})") from error

    def _texts(self, table: pa.Table, column: str, before: int) -> list[str]:
        texts: list[str | None] = table[column].to_pylist()
        if None in texts:
            raise UserError(
                f"{self._path}, row {before + texts.index(None) + 1}: column {column!r} holds null"
            )
        return texts  # type: ignore[return-value]

    def _digest(self) -> str:
        """Of what the file says of all its row groups: sizes, places and statistics."""
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            file.seek(max(0, size - 8))
            length = int.from_bytes(file.read(4), "little")
            file.seek(max(0, size - 8 - length))
            return hashlib.sha256(str(size).encode() + file.read()).hexdigest()


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(inner) or pa.types.is_large_string(inner)
        or pa.types.is_string_view(inner)
    )  # fmt: skip
