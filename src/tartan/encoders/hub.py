"""Finds an encoder's folder, locally or on the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from tartan.errors import UserError, first_line
from tartan.files import OFFLINE, check_reachable

_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]


def local_or_cached(name: str, revision: str | None = None, code: bool = False) -> Path:
    """Return the folder of encoder `name`: local, in the Hub's cache, or downloaded into it.

    Args:
        name: a local folder or a name on the Hub.
        revision: branch, tag or commit on the Hub; None for the default branch.
        code: whether to download Python files too.

    Raises:
        UserError: there is no such folder or Hub repository, or the Hub does not answer within
            seconds; the message says what works offline.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(f"encoder folder {name} has no config.json; is it a saved model?")
        return folder
    if folder.is_file():
        raise UserError(f"encoder {name} is a file; name the folder that holds the saved model")
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise UserError(f"encoder folder {name} does not exist")
    patterns = [*_FILES, "*.py"] if code else _FILES
    try:
        cached = _cached_snapshot(name, revision, patterns)
    except HFValidationError as error:
        raise UserError(f"encoder {name!r} is neither a folder nor a name on the Hub") from error
    if cached is not None:
        return cached
    check_reachable(constants.ENDPOINT, f"encoder {name}")
    try:
        return Path(
            huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=patterns)
        )
    except GatedRepoError as error:
        raise UserError(
            f"encoder {name} is gated: ask for access on the Hub and run 'hf auth login'"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
        raise UserError(f"the Hub has no encoder {name} (revision {revision or 'main'})") from error
    except (OSError, huggingface_hub.errors.HfHubHTTPError) as error:
        reason = first_line(error)
        raise UserError(f"could not fetch encoder {name}: {reason}; {OFFLINE}") from error


def _cached_snapshot(name: str, revision: str | None, patterns: list[str]) -> Path | None:
    """Return the cached snapshot; None if it lacks the configuration or weights."""
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                name, revision=revision, allow_patterns=patterns, local_files_only=True
            )
        )
    except LocalEntryNotFoundError:
        return None
    complete = (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))
    return folder if complete else None
