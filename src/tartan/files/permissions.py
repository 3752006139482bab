"""Permissions of files that libraries write."""

from __future__ import annotations

from pathlib import Path


def share_weights(folder: Path, other: str) -> None:
    """Let whoever may read the file `other` of `folder` read the safetensors files there.

    safetensors lets nobody else read its files; other files are as the umask says.
    """
    for path in folder.glob("*.safetensors"):
        path.chmod((folder / other).stat().st_mode)
