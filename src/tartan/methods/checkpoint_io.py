"""Writes and reads checkpoints with checksums, so that damaged ones are noticed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from tartan.errors import UserError
from tartan.files import is_whole, remove, write_with_checksum


def load_whole(path: Path) -> dict[str, Any]:
    """Load what `torch.save` wrote, after comparing its checksum; plain values and tensors only.

    Raises:
        UserError: the file is incomplete or damaged.
    """
    if not is_whole(path):
        raise UserError(
            f"{path} is not the file that was written (its checksum differs); "
            "start over with resume=false"
        )
    return load_plain(path)


def load_plain(path: Path, map_location: Any = "cpu") -> dict[str, Any]:
    """Load plain values and tensors from a checkpoint; no other objects are built.

    Raises:
        UserError: the file holds other objects, or cannot be read.
    """
    try:
        content: dict[str, Any] = torch.load(path, map_location=map_location, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError) as error:
        raise UserError(
            f"{path} holds more than numbers and tensors, or is damaged, and is not read; remove "
            f"{path.parent}, and the same command trains that part again"
        ) from error
    return content


class DurableCheckpointIO(TorchCheckpointIO):
    """Writes Lightning's checkpoints durably, with a checksum beside each."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write `path` and `PATH.sha256`."""
        write_with_checksum(Path(path), lambda scratch: torch.save(checkpoint, scratch))

    def load_checkpoint(
        self, path: Any, map_location: Any = "cpu", weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Load plain values and tensors only, whatever `weights_only` says."""
        return load_plain(Path(path), map_location)

    def remove_checkpoint(self, path: str | Path) -> None:
        """Remove a checkpoint and its checksum."""
        remove(Path(path))
