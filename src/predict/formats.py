"""Which format a file has: by its name, or as the user says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from src.errors import UserError

STREAM = "-"
"""Standard input or output."""
_TEXT = ("csv", "tsv", "jsonl")
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_SUFFIXES |= {".parquet": "parquet"}


@dataclass(frozen=True)
class Format:
    """How rows are written.

    Attributes:
        name: `csv`, `tsv`, `jsonl` or `parquet`.
        gzipped: whether the file is compressed as a whole.
    """

    name: str
    gzipped: bool = False

    @property
    def family(self) -> str:
        """Formats of one family turn into each other without any choice."""
        return "csv" if self.name == "tsv" else self.name


def formats_of(source: str, target: str, stated: str | None) -> tuple[Format, Format]:
    """The formats of input and output.

    A file's name tells. For standard input and output `format=` does, or the name of the other.

    Raises:
        UserError: nothing tells, or rows of the one cannot be written as the other.
    """
    if stated is not None and stated not in _TEXT:
        raise UserError(f"format={stated} is none of {', '.join(_TEXT)}")
    given = _by_name("input", source), _by_name("output", target)
    names = [one.name for one in given if one is not None]
    if stated is None and not names:
        raise UserError(f"input=- and output=- need the format of rows: format={'|'.join(_TEXT)}")
    default = Format(stated or names[0])
    found = given[0] or default, given[1] or default
    for option, path, one in zip(("input", "output"), (source, target), found, strict=True):
        if path == STREAM and one.name not in _TEXT:
            raise UserError(f"{option}=- cannot be {one.name}; use a file, or another format")
    if found[0].family != found[1].family:
        raise UserError(
            f"input is {found[0].name} and output {found[1].name}; predictions keep the format of "
            f"the input (CSV and TSV go together): name an output that ends in .{found[0].name}"
        )
    return found


def _by_name(option: str, path: str) -> Format | None:
    """What the file's name says; None for standard input and output.

    Raises:
        UserError: it says nothing.
    """
    if path == STREAM:
        return None
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    last = suffixes[:-1] if gzipped else suffixes
    name = _SUFFIXES.get(last[-1]) if last else None
    if name is None or (name == "parquet" and gzipped):
        raise UserError(
            f"{option}={path}: cannot tell the format; a file's name has to end in one of "
            f"{', '.join(_SUFFIXES)} (text ones also with .gz)"
        )
    return Format(name, gzipped)
