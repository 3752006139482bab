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
        write_durably(Path(path), lambda scratch: torch.save(checkpoint, scratch))

    def load_checkpoint(
        self, path: Any, map_location: Any = "cpu", weights_only: bool | None = None
    ) -> dict[str, Any]:
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
    """Return whether a file agrees with its checksums (zip's), which `torch.load` ignores."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        return False


def data_settings(data: TaskData | None) -> dict[str, Any]:
    """Return what of the data changes a training, for its checkpoints."""
    if data is None:
        return {}
    return {
        "TartanData.seed": data.seed,
        "TartanData.batch_size": data.sizes.batch_size,
        "TartanData.sizes.meta_batch_size": data.sizes.meta_batch_size,
        **data.prepared.fingerprints,
    }


def check_same_training(
    checkpoint: Mapping[str, Any], arguments: Mapping[str, Any], data: TaskData | None
) -> None:
    """Check that a training goes on from a checkpoint with the settings and data it began with."""
    before, stored = checkpoint["progress"]["data"], checkpoint["hyper_parameters"]
    before = {**before, **{name: stored[name] for name in _OF_THE_TRAINING}}
    now = {**data_settings(data), **{name: arguments[name] for name in _OF_THE_TRAINING}}
    changes = [
        f"{name} was {before.get(name)!s:.200}, is {now.get(name)!s:.200}"
        for name in {**before, **now}
        # as text that does not tell tuples from lists, but the order of tasks
        if json.dumps(before.get(name), default=str) != json.dumps(now.get(name), default=str)
    ]
    if changes:
        raise UserError(
            f"the checkpoint's training had other settings or data: {'; '.join(changes)}; give the "
            "same, or start anew without ckpt_path (with ResumePoints, in another folder)"
        )
