"""The shards that a corpus is built from: local files, or files at an address such as the Hub's."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from huggingface_hub import constants

from src.data.checksum import sha256_of
from src.errors import UserError
from src.reachable import check_reachable

SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
_OFFLINE = "offline, give local files"


@dataclass(frozen=True)
class Source:
    """One shard: a file of JSON Lines, plain or gzipped.

    Attributes:
        name: its path or address.
        size: in bytes.
        modified: when it was changed last, in ns; None where that is not known.
        checksum: `sha256:...`, or what its place calls this version; None if not computed yet.
    """

    name: str
    size: int
    modified: int | None = None
    checksum: str | None = None

    def seen(self) -> Source:
        """The same with its checksum, for which a local file is read.

        Raises:
            UserError: the file changes while it is read.
        """
        if self.checksum is not None:
            return self
        path = Path(self.name)
        checksum = f"sha256:{sha256_of(path)}"
        if _local(path) != self:
            raise UserError(f"{path} is being written to; wait until it is whole")
        return Source(self.name, self.size, self.modified, checksum)

    def is_still(self, known: Source) -> bool:
        """Whether this is what was `known`; read again only where its time has changed."""
        if self.size != known.size:
            return False
        if self.modified is not None and self.modified == known.modified:
            return True
        return self.seen().checksum == known.checksum


def find_sources(entries: Iterable[str], option: str) -> list[Source]:
    """The files that `entries` name, each once, those of a folder or pattern sorted by name.

    Args:
        option: where the entries were given, for messages.

    Raises:
        UserError: an entry names no file, or a file of another kind.
    """
    found: dict[str, Source] = {}
    for entry in entries:
        sources = _remote(entry, option) if "://" in entry else _locals(entry, option)
        found |= {source.name: source for source in sources}
    return list(found.values())


def _locals(entry: str, option: str) -> list[Source]:
    path = Path(entry).expanduser()
    if path.is_dir():
        names = sorted(str(child) for child in path.iterdir() if _is_records(child.name))
        missing = f"{option}: the folder {entry} holds no file that ends in {', '.join(SUFFIXES)}"
    elif path.is_file():
        names, missing = [str(path)], ""
    else:
        names = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 (may be absolute)
        names = [name for name in names if Path(name).is_file()]
        missing = f"{option}: there is no file {entry}"
    if not names:
        raise UserError(missing)
    _check_kinds(names, option)
    return [_local(Path(name)) for name in names]


def _local(path: Path) -> Source:
    status = path.stat()
    return Source(str(path), status.st_size, status.st_mtime_ns)


def _remote(entry: str, option: str) -> list[Source]:
    if entry.startswith("hf://"):
        check_reachable(constants.ENDPOINT, entry, _OFFLINE)
    try:
        system, path = fsspec.core.url_to_fs(entry)
        if system.isdir(path):
            infos = [i for i in system.ls(path, detail=True) if _is_records(str(i["name"]))]
        elif glob.has_magic(path):
            infos = list(system.glob(path, detail=True).values())
        else:
            infos = [system.info(path)]
    except (OSError, ValueError, ImportError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{option}: cannot list {entry}: {reason}") from error
    if not infos:
        raise UserError(f"{option}: there is no file {entry}")
    infos.sort(key=lambda info: str(info["name"]))
    names = [system.unstrip_protocol(str(info["name"])) for info in infos]
    _check_kinds(names, option)
    return [
        Source(name, int(info["size"] or 0), None, _version(system, info))
        for name, info in zip(names, infos, strict=True)
    ]


def _version(system: Any, info: dict[str, Any]) -> str:
    """What tells this version of a remote file from others; the Hub gives a SHA-256 or a blob."""
    if (info.get("lfs") or {}).get("sha256"):
        return f"sha256:{info['lfs']['sha256']}"
    if info.get("blob_id"):
        return f"blob:{info['blob_id']}"
    return f"info:{system.checksum(info['name'])}"


def _is_records(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _check_kinds(names: Iterable[str], option: str) -> None:
    for name in names:
        if not _is_records(name):
            raise UserError(f"{option}: {name} must end in one of {', '.join(SUFFIXES)}")
