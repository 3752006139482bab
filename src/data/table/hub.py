"""Opens data sets on the Hugging Face Hub, or in a folder that `datasets` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import datasets
from huggingface_hub import constants

from src.data.table.arrow import DatasetTable
from src.errors import UserError, first_line
from src.files.reachable import check_reachable


def open_hub(name: str, config: str | None, cache_dir: Path) -> Mapping[str, DatasetTable]:
    """Return the splits of a data set as tables, by name.

    Raises:
        UserError: the Hub does not answer, or has no such data set or configuration.
    """
    local = Path(name).expanduser()
    if not local.is_dir() and not constants.HF_HUB_OFFLINE:  # offline: it may be in the Hub's cache
        check_reachable(constants.ENDPOINT, f"data set {name}")
    try:
        found = datasets.load_dataset(
            str(local) if local.is_dir() else name, config, cache_dir=str(cache_dir / "datasets")
        )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise UserError(f"task.hub={name} cannot be loaded: {first_line(error)}") from error
    return {split: DatasetTable(f"{name}, {split}", rows) for split, rows in found.items()}
