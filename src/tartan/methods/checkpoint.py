"""Writes and reads checkpoints, also those that anybody may have written."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from tartan.data.task_data import TaskData
from tartan.errors import UserError
from tartan.files import write_durably

_OF_THE_TRAINING = (
    "tasks", "weighting", "optimisation", "seed", "stage", "labels", "metric", "meta_head",
    "inner_products", "sampled", "max_length",
)  # fmt: skip
"""Arguments that change what is trained. The encoder is compared by the shapes of its weights."""


class DurableCheckpointIO(TorchCheckpointIO):
    """Writes Lightning's checkpoints so that they survive a power cut; there is no half of one."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write `path`."""
        write_durably(Path(path), lambda scratch: torch.save(checkpoint, scratch))

    def load_checkpoint(
        self, path: Any, map_location: Any = "cpu", weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Load plain values and tensors only, whatever `weights_only` says."""
        return load_checkpoint(Path(path), map_location)


def load_checkpoint(path: Path, map_location: Any = "cpu") -> dict[str, Any]:
    """Load plain values and tensors from a checkpoint; no other objects are built."""
    try:
        if not is_whole(path):
            raise RuntimeError("it is damaged")
        content: dict[str, Any] = torch.load(path, map_location=map_location, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError) as error:
        raise UserError(
            f"{path} holds more than numbers and tensors, or is damaged, and is not read; remove "
            f"{path.parent}, and the same command trains that part again"
        ) from error
    return content


def is_whole(path: Path) -> bool:
    """Return whether a file has the checksums that `torch.save` wrote into it (zip's CRCs).

    `torch.load` does not compare them.
    """
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        return False


def data_settings(data: TaskData) -> dict[str, Any]:
    """Return what of the data changes a training, for its checkpoints."""
    return {
        "TartanData.seed": data.seed,
        "TartanData.batch_size": data.sizes.batch_size,
        "TartanData.sizes.meta_batch_size": data.sizes.meta_batch_size,
        **data.prepared.fingerprints,
    }


def check_same_training(
    checkpoint: Mapping[str, Any], arguments: Mapping[str, Any], data: Mapping[str, Any]
) -> None:
    """Check that a training goes on from a checkpoint with the settings and data it began with.

    Args:
        checkpoint: the checkpoint.
        arguments: the module's arguments now.
        data: the `data_settings` now; empty for loaders.
    """
    stored = checkpoint["hyper_parameters"]
    differing = [n for n in _OF_THE_TRAINING if _text(stored[n]) != _text(arguments[n])]
    before = checkpoint["progress"]["data"]
    differing += [n for n in {**before, **data} if data and before.get(n) != data.get(n)]
    if differing:
        values = {n: ({**stored, **before}.get(n), {**arguments, **data}.get(n)) for n in differing}
        changes = [f"{n} was {old!s:.200}, is {new!s:.200}" for n, (old, new) in values.items()]
        raise UserError(
            f"the checkpoint's training had other settings or data: {'; '.join(changes)}; give the "
            "same, or start anew without ckpt_path (with ResumePoints, in another folder)"
        )


def _text(value: Any) -> str:
    """Return a value as text that does not tell tuples from lists, but the order of tasks."""
    return json.dumps(value, default=str)
