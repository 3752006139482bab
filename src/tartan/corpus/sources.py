"""Finds the files that a corpus is built from: local ones, or at an address such as the Hub's."""

from __future__ import annotations

import glob
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

from tartan.errors import UserError, first_line
from tartan.files import sha256_of

SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
LONGEST_LINE = 1 << 27
"""Maximum length of a line: 128 MiB, longer than any article [bytes]."""


@dataclass(frozen=True)
class Source:
    """A file of JSON Lines, plain or gzipped.

    Attributes:
        name: its path or address.
        size: its size [bytes].
        version: what changes with the content: SHA-256 or blob id on the Hub, a local file's time.
    """

    name: str
    size: int
    version: str

    def description(self) -> dict[str, Any]:
        """Return name, size and checksum, to recognise the file later."""
        is_local = "://" not in self.name
        digest = f"sha256:{sha256_of(Path(self.name))}" if is_local else self.version
        return {"name": self.name, "size": self.size, "checksum": digest}

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield the place and the content of each line that is not blank."""
        number = 0
        try:
            # as bytes: what is not UTF-8 is then found line by line
            with fsspec.open(self.name, "rb", compression="infer") as file:
                lines = iter(lambda: file.readline(LONGEST_LINE + 1), b"")
                for number, line in enumerate(lines, start=1):
                    place = f"{self.name}, line {number}"
                    if len(line) > LONGEST_LINE:
                        raise UserError(f"{place} is longer than {LONGEST_LINE >> 20} MiB")
                    if not line.isspace():
                        yield place, line
        except (OSError, EOFError, zlib.error) as error:
            reason = first_line(error)
            raise UserError(f"{self.name} cannot be read after line {number}: {reason}") from error
        if "://" not in self.name and fsspec.filesystem("file").ukey(self.name) != self.version:
            raise UserError(f"{self.name} was written to while it was read")


def find_sources(entries: Iterable[str], option: str) -> list[Source]:
    """Return the files that `entries` name, each once; those of a folder or pattern by name.

    Args:
        entries: files, folders, patterns or addresses.
        option: the option that gives them, for messages.
    """
    return list({source.name: source for e in entries for source in _files(e, option)}.values())


def _files(entry: str, option: str) -> list[Source]:
    remote = "://" in entry
    try:
        system, path = fsspec.core.url_to_fs(entry if remote else Path(entry).expanduser())
        if system.isdir(path):
            infos = system.ls(path, detail=True)
            infos = [info for info in infos if info["name"].lower().endswith(SUFFIXES)]
        elif glob.has_magic(path) and not system.exists(path):
            infos = list(system.glob(path, detail=True).values())
        else:
            infos = [system.info(path)]
    except (OSError, ValueError, ImportError) as error:
        raise UserError(f"{option}: cannot list {entry}: {first_line(error)}") from error
    files = {str(info["name"]): info for info in infos if info["type"] == "file"}
    others = [path for path in files if not path.lower().endswith(SUFFIXES)]
    if others or not files:
        kinds = ", ".join(SUFFIXES)
        raise UserError(f"{option}: {min(others, default=entry)}: no files that end in {kinds}")
    sources = []
    for path, info in sorted(files.items()):
        version = (info.get("lfs") or {}).get("sha256") or info.get("blob_id") or system.ukey(path)
        name = system.unstrip_protocol(path) if remote else path
        sources.append(Source(name, int(info["size"] or 0), str(version)))
    return sources
