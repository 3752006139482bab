"""Finds symbolic links in folders that somebody else may have made, which lead out of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tartan.errors import UserError


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether `path`, with links followed, is in `folder`.

    The links of a folder in the Hub's cache (`snapshots/COMMIT`) lead to the folder `blobs` beside
    it, which counts as inside.
    """
    # not resolve(), which raises an error for a link to itself
    target, own = (Path(os.path.realpath(given)) for given in (path, folder))
    if target.is_relative_to(own):
        return True
    return any(
        target.is_relative_to(above.parent.parent / "blobs")
        for above in (own, *own.parents)
        if above.parent.name == "snapshots"
    )


def check_written_folder(folder: Path) -> None:
    """Check that no link in `folder`, at any depth, leads out of it, and that nothing is a pipe.

    Raises:
        UserError: a link does: to write through it would change a file elsewhere. Or something is
            neither a file nor a folder: to write to a pipe would wait for ever.
    """
    for path in paths_in(folder):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # another process has removed or renamed it since
            continue
        if not any(kind(mode) for kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)):
            raise UserError(f"{path} is neither a file nor a folder; remove it")
        if not is_inside(path, folder):
            raise UserError(
                f"{path} is a link to {os.readlink(path)}, outside of {folder}, and nothing is "  # noqa: PTH115
                "written through it; put the file or folder itself there, or remove the link"
            )


def paths_in(folder: Path) -> Iterator[Path]:
    """Yield everything in `folder`, at any depth; folders that are links are not entered."""
    for current, folders, files in os.walk(folder):
        yield from (Path(current, name) for name in (*folders, *files))
