"""Opens a data set that `save_to_disk` wrote, whose description anybody may have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets

from tartan.data.table.arrow import ArrowTable, table_of_dataset
from tartan.errors import UserError, first_line
from tartan.files import check_is_file, is_inside, read_bytes

_STATE, _INFO = "state.json", "dataset_info.json"


def is_saved_dataset(path: Path) -> bool:
    """Return whether `save_to_disk` wrote the folder `path`."""
    return (path / _STATE).is_file() and (path / _INFO).is_file()


def open_saved_dataset(path: Path) -> ArrowTable:
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
        if not _lists_names(info["features"]):
            raise UserError(f"{path / _INFO}: a ClassLabel has to list the names of labels")
        return table_of_dataset(str(path), datasets.Dataset.load_from_disk(path))
    except UserError:
        raise
    except Exception as error:  # a damaged description leads to errors of any class
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"{path} cannot be read as a data set ({reason}); save it again") from error


def _lists_names(features: Any) -> bool:
    """Return whether no feature makes up names of labels, or reads them from a file elsewhere."""
    if isinstance(features, list):
        return all(map(_lists_names, features))
    if not isinstance(features, dict):
        return True
    if features.get("_type") == "ClassLabel" and not isinstance(features.get("names"), list):
        return False
    return all(map(_lists_names, features.values()))
