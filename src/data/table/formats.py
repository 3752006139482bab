"""What a file holds and how it is compressed, by its name: the one table of endings."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

STREAM = "-"
"""Standard input or output."""
KINDS = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".arrow": "arrow", ".txt": "text", ".md": "markdown",
}  # fmt: skip
"""Kinds of files by the ending of their names, which may be followed by one of `COMPRESSIONS`."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "arrow")
"""Kinds with rows of named columns."""


class Format(NamedTuple):
    """One of the kinds, and `gzip` or `zstd` where the file is compressed as a whole."""

    kind: str
    compression: str | None = None


def format_of(
    path: Path, kinds: Collection[str], packed: Collection[str] = tuple(COMPRESSIONS)
) -> Format | None:
    """The format that a file's name tells; None where that is none of `kinds`.

    Args:
        packed: endings of compressed files that may be.
    """
    name = path.name.lower()
    last = Path(name).suffix
    compression = COMPRESSIONS[last] if last in packed else None
    kind = KINDS.get(Path(name.removesuffix(last)).suffix if compression else last)
    return Format(kind, compression) if kind is not None and kind in kinds else None


def endings_of(kinds: Collection[str], packed: Collection[str] = tuple(COMPRESSIONS)) -> str:
    """Return what names of files of these kinds end in, for a message."""
    own = ", ".join(ending for wanted in kinds for ending, kind in KINDS.items() if kind == wanted)
    return f"{own}, or one of these and {' or '.join(packed)}"
