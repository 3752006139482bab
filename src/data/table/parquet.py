"""Parquet files."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow
from pyarrow import parquet

from src.data.checksum import sha256_of
from src.data.table.base import Row, Table
from src.data.table.lines import is_gzipped
from src.errors import UserError

_BATCH = 1024
"""Rows in memory at once."""


class ParquetTable(Table):
    """A Parquet file, plain or gzipped (then unpacked in memory).

    Raises:
        UserError: it is none, or damaged.
    """

    unit = "row"

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        self._path = path
        try:
            content = io.BytesIO(gzip.decompress(path.read_bytes())) if is_gzipped(path) else path
            self._file = parquet.ParquetFile(content)
        except (pyarrow.ArrowException, OSError, EOFError, zlib.error) as error:
            raise self._damaged(error) from error
        self.columns = tuple(self._file.schema_arrow.names)

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`."""
        number = 0
        try:
            for batch in self._file.iter_batches(_BATCH):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values)
        except (pyarrow.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def fingerprint(self) -> str:
        return sha256_of(self._path)

    def _damaged(self, error: Exception) -> UserError:
        return UserError(f"{self.source} cannot be read as Parquet: {str(error).splitlines()[0]}")
