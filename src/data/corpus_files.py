"""Finds the files of a corpus: a single one, those that a glob matches, or those in a folder."""

from __future__ import annotations

import glob
import logging
from collections import Counter
from pathlib import Path

from src.data.table.formats import TABLES, endings_of, format_of
from src.data.table.saved_dataset import is_saved_dataset
from src.errors import UserError
from src.files.links import is_inside

log = logging.getLogger(__name__)

CORPUS_KINDS = ("text", "markdown", *TABLES)
"""Kinds of corpus files, in the order in which their texts are read."""
_IN_FOLDERS = ("text", "markdown", "jsonl", "parquet")
"""Kinds of files that are read from a folder; others in it are seldom unlabelled text."""


def files_of(path: Path) -> list[Path]:
    """Return the files that `path` stands for, in the order of their kinds, then of their names.

    A folder that `save_to_disk` wrote stands for itself. Another stands for the texts in it at any
    depth, without files and folders whose names begin with a dot; links may not lead out of it. A
    path with `*`, `?` or `[` that is not itself a file stands for the files that match it (`**`
    matches any number of folders).

    Raises:
        UserError: there are no such files, a file that a glob matches is of an unknown kind, or one
            in a folder is a link to a file elsewhere.
    """
    if is_saved_dataset(path):
        return [path]
    if path.is_dir():
        return _in_folder(path)
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
        files = [file for file in found if file.is_file()]
        if not files:
            raise UserError(f"corpus {path} matches no files")
        return sorted(files, key=lambda file: CORPUS_KINDS.index(kind_of(file)))
    return [path]


def kind_of(file: Path) -> str:
    """Return the kind of a file, one of `CORPUS_KINDS`, by the ending of its name.

    A data set that `save_to_disk` wrote is of the kind `arrow`.

    Raises:
        UserError: the name does not end in any of the known endings.
    """
    if is_saved_dataset(file):
        return "arrow"
    found = format_of(file, CORPUS_KINDS)
    if found is None:
        raise UserError(f"corpus {file}: the name must end in {endings_of(CORPUS_KINDS)}")
    return found.kind


def root_of(path: Path) -> Path:
    """Return the folder relative to which files are named, so that a moved corpus is recognised."""
    if path.is_dir():
        return path
    parts = path.parts
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:first])


def _in_folder(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    files = sorted(
        path
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    texts = [file for file in files if format_of(file, _IN_FOLDERS)]
    for file in texts:
        if not is_inside(file, folder):
            raise UserError(
                f"corpus {folder}: {file.relative_to(folder)} is a link to a file elsewhere and is "
                f"not read; put the file itself there, or name the files: {folder}/*{file.suffix}"
            )
    if not texts:
        raise UserError(
            f"corpus {folder} is a folder without {endings_of(_IN_FOLDERS)} files; tables of "
            f"another kind are named by a pattern: '{folder}/*.csv'"
        )
    left = (file for file in files if not format_of(file, _IN_FOLDERS))
    others = Counter(file.suffix.lower() or file.name for file in left)
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        log.warning("corpus %s: files that are not read as text are left out: %s", folder, kinds)
    return sorted(texts, key=lambda file: CORPUS_KINDS.index(kind_of(file)))
