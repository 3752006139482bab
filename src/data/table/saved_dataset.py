"""Opens a data set that `save_to_disk` wrote, whose description anybody may have changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from src.data.table.arrow import DatasetTable
from src.errors import UserError, first_line
from src.files.checksum import check_is_file
from src.files.links import is_inside
from src.files.plain import read_bytes

_STATE, _INFO = "state.json", "dataset_info.json"


def is_saved_dataset(path: Path) -> bool:
    """Return whether `save_to_disk` wrote the folder `path`."""
    return (path / _STATE).is_file() and (path / _INFO).is_file()


def open_saved_dataset(path: Path) -> DatasetTable:
    """Open the data set in a folder.

    Raises:
        UserError: its description names files elsewhere, or it is damaged.
    """
    try:
        for name in (_STATE, _INFO):
            if not is_inside(path / name, path):
                raise UserError(f"{path / name} is a link to a file elsewhere and is not read")
        state, info = (json.loads(read_bytes(path / name)) for name in (_STATE, _INFO))
        for file in state["_data_files"]:
            if not is_inside(path / file["filename"], path):
                raise UserError(f"{path}: {file['filename']!r} is outside of it and is not read")
            check_is_file(path / file["filename"])
        for label in _labels(info["features"]):
            if not isinstance(label.get("names"), list) or label.get("names_file") is not None:
                raise UserError(f"{path / _INFO}: a ClassLabel has to list the names of its labels")
        return DatasetTable(str(path), datasets.load_from_disk(str(path)))
    except UserError:
        raise
    except Exception as error:  # a damaged description leads to errors of any class
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"{path} cannot be read as a data set ({reason}); save it again") from error


def _labels(features: Any) -> Iterator[dict[str, Any]]:
    """Yield the descriptions of labels, at any depth."""
    parts = features if isinstance(features, list) else []
    if isinstance(features, dict):
        if features.get("_type") == "ClassLabel":
            yield features
        parts = list(features.values())
    for part in parts:
        yield from _labels(part)
