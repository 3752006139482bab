"""Durable writes, safe reads of files that anybody may have written, checksums, escaped text."""

import errno
import hashlib
import http.client
import os
import re
import stat
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from tartan.errors import BusyError, UserError, first_line

LARGEST = 32 << 20
"""Maximum size of a JSON or YAML file that is read [bytes]."""
CALIBRATION = "calibration.json"
"""File beside a classifier with the temperature of its scores."""
CONNECT_TIMEOUT_S = 5.0
"""Time after which a server that does not answer counts as unreachable [s]."""
OFFLINE = (
    "offline, use encoder=minilm or a local folder, and task=docstrings or data_dir=FOLDER that "
    "holds the task's folder"
)
_DEEPEST = 100
"""Maximum number of lists and mappings of a YAML file within each other."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def write_durably(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it, and rename it to `path`.

    An interruption at any point leaves `path` as it was before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.part")
    scratch.unlink(missing_ok=True)  # a link, through which another file would be written
    try:
        write(scratch)
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())
    except BaseException as error:
        scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # of a write to an open file
            error.filename = str(path)
        # what torch's zip writer raises where the disk is full or a limit is reached
        if isinstance(error, RuntimeError) and re.search("file|inline_container|ios", str(error)):
            raise OSError(errno.EIO, first_line(error), str(path)) from error
        raise
    scratch.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # so that the renaming survives a power cut
    finally:
        os.close(descriptor)


def write_text_durably(path: Path, text: str) -> None:
    """Write a file of UTF-8 text with `write_durably`."""
    write_durably(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


@contextmanager
def process_lock(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock file while this process lives; a `BusyError` says `busy` if another holds it."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(path).acquire(timeout=0.1)
    except Timeout as error:
        raise BusyError(busy) from error
    with lock:
        yield


def digest_of(text: str) -> str:
    """Return a text's SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the file's SHA-256 as 64 hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error


def check_is_file(path: Path) -> None:
    """Raise a `UserError` unless `path` is a regular file."""
    if not path.is_file():
        raise UserError(f"{path} {'is not a file' if path.exists() else 'does not exist'}")


def check_sha256(path: Path, expected: str) -> None:
    """Raise a `UserError` unless the file has its published checksum."""
    check_is_file(path)
    if sha256_of(path) != expected:
        raise UserError(f"{path} is not the published file (its SHA-256 differs); fetch it again")


def share_weights(folder: Path, other: str) -> None:
    """Let whoever may read the file `other` of `folder` read the safetensors files there too."""
    for path in folder.glob("*.safetensors"):
        path.chmod((folder / other).stat().st_mode)


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether `path`, links followed, is in `folder`, or in `blobs` of the Hub's cache."""
    # not resolve(), which raises an error for a link to itself
    target, base = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    above = [at.parent for at in (base, *base.parents) if at.parent.name == "snapshots"]
    return any(target.is_relative_to(at) for at in (base, *(at.parent / "blobs" for at in above)))


def paths_in(folder: Path) -> Iterator[Path]:
    """Yield everything in `folder`, at any depth; folders that are links are not entered."""
    for current, folders, files in os.walk(folder):
        yield from (Path(current, name) for name in (*folders, *files))


def check_written_folder(folder: Path) -> None:
    """Refuse a folder with pipes, or with links by which files elsewhere would be written."""
    for path in paths_in(folder):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # another process has removed or renamed it since
            continue
        if not any(kind(mode) for kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)):
            raise UserError(f"{path} is neither a file nor a folder; remove it")
        if not is_inside(path, folder):
            raise UserError(f"{path} is a link out of {folder}, and nothing is written through it")


class Plain(BaseModel):
    """The checked content of a file; unknown entries are ignored, and strings are not converted."""

    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, ser_json_inf_nan="constants"
    )


Model = TypeVar("Model", bound=Plain)


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a regular file of at most `largest` bytes; a `UserError` otherwise."""
    try:
        if not path.is_file():
            raise UserError(f"{path.name} is not there")
        if path.stat().st_size > largest:
            raise UserError(f"{path.name} is too large ({path.stat().st_size:,} bytes)")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path.name} cannot be read ({error.strerror})") from error


def read_json(path: Path, model: type[Model]) -> Model:
    """Read a JSON file as `model`; a `UserError` where it cannot be read or does not fit."""
    content = read_bytes(path)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise UserError(f"{path.name}: {violation(error)}") from error


def violation(error: ValidationError) -> str:
    """Return the first error in a file's content, and where it is."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def read_yaml(path: Path) -> Any:
    """Return a YAML file's plain content; no tags, references (memory bombs) or deep nesting."""
    text, depth = read_bytes(path).decode("utf-8", errors="replace"), 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("uses YAML references, which no run writes")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError(f"lists and mappings are nested more than {_DEEPEST} deep")
        return yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{path.name}: {first_line(error)}") from error


def one_line(text: str) -> str:
    """Return the text on one line: control characters and line breaks become single spaces."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def escape_markdown(text: str) -> str:
    """Return the text on one line, with all Markdown and HTML syntax escaped."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    syntax = r"([\\`*_{}\[\]|~<>&$])"
    return re.sub(syntax, lambda m: entities.get(m[1], "\\" + m[1]), one_line(text))


def code_block(text: str, language: str) -> str:
    """Return the text as a block of code in Markdown, with a fence that does not occur in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}{language}\n{text}\n{fence}"


def check_reachable(url: str, what: str) -> None:
    """Raise a `UserError` if no server answers at `url`; clients would retry for 20 s and more."""
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        raise UserError(f"could not fetch {what}: HF_HUB_OFFLINE is set; {OFFLINE}")
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=CONNECT_TIMEOUT_S):
            pass
    except urllib.error.HTTPError:
        pass  # an error status is an answer: the caller's own request will say what is wrong
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UserError(f"could not fetch {what}: no connection to {url}; {OFFLINE}") from error
