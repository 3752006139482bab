"""Checkpoints that are whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from src.data.checksum import is_whole
from src.errors import UserError
from src.run_folder.durable import remove, write_with_checksum


def load_whole(path: Path) -> dict[str, Any]:
    """What `torch.save` wrote, after checking that it is whole; plain values and tensors only.

    Raises:
        UserError: the file is torn, or not the one that was written.
    """
    if not is_whole(path):
        raise UserError(
            f"{path} is not the file that was written (its checksum differs); "
            "start over with resume=false"
        )
    content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return content


class DurableCheckpointIO(TorchCheckpointIO):
    """Lightning's checkpoints, written whole or not at all, with a checksum beside each."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write `path` and `PATH.sha256`."""
        write_with_checksum(Path(path), lambda scratch: torch.save(checkpoint, scratch))

    def remove_checkpoint(self, path: str | Path) -> None:
        """Remove both."""
        remove(Path(path))
