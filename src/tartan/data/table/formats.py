"""Tells a file's format and compression by the ending of its name."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

KINDS = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".arrow": "arrow", ".txt": "text", ".md": "markdown",
}  # fmt: skip
"""Kind of a file by the ending of its name; one of `COMPRESSIONS` may follow the ending."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Compression of a file by the last ending of its name."""
COLUMNAR = ("parquet", "arrow")
"""Kinds of files that hold columns with types; the others hold lines of text."""
TABLES = ("csv", "tsv", "jsonl", "json", *COLUMNAR)
"""Kinds of files that hold rows of named columns."""


class Format(NamedTuple):
    """A file's kind, and `gzip` or `zstd` where the file is compressed as a whole."""

    kind: str
    compression: str | None = None


def format_of(path: Path, kinds: Collection[str]) -> Format | None:
    """Return the format that a file's name tells; None where its kind is not one of `kinds`."""
    name, last = path.name.lower(), path.suffix.lower()
    compression = COMPRESSIONS.get(last)
    kind = KINDS.get(Path(name.removesuffix(last)).suffix if compression else last)
    return Format(kind, compression) if kind is not None and kind in kinds else None


def endings_of(kinds: Collection[str]) -> str:
    """Return the endings of the names of files of these kinds, for a message."""
    own = ", ".join(ending for wanted in kinds for ending, kind in KINDS.items() if kind == wanted)
    return f"{own}, or one of these and {' or '.join(COMPRESSIONS)}"
