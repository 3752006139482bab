"""Opens a data set that `save_to_disk` wrote, whose description anybody may have changed."""

from __future__ import annotations

import json
from pathlib import Path

from src.data.table.arrow import ArrowTable, open_messages
from src.errors import UserError, first_line
from src.files.checksum import check_is_file
from src.files.links import is_inside
from src.files.plain import read_bytes

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
        names = [file["filename"] for file in state["_data_files"]]
        for name in names:
            if not is_inside(path / name, path):
                raise UserError(f"{path}: {name!r} is outside of it and is not read")
            check_is_file(path / name)
        table = open_messages(str(path), [path / name for name in names])
        table.total = sum(batch.num_rows for batch in table.batches())
        table.fingerprint = str(state["_fingerprint"])
        for column, feature in info["features"].items():
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
                if not isinstance(feature.get("names"), list):
                    raise UserError(f"{path / _INFO}: a ClassLabel has to list the names of labels")
                table.labels[column] = feature["names"]
        return table
    except UserError:
        raise
    except Exception as error:  # a damaged description leads to errors of any class
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"{path} cannot be read as a data set ({reason}); save it again") from error
