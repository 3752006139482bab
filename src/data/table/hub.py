"""Data sets on the Hugging Face Hub, or in a folder that `datasets` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import datasets
from huggingface_hub import constants

from src.data.table.base import Row, Table
from src.errors import UserError
from src.reachable import check_reachable


class HubTable(Table):
    """One split of a data set; labels that it stores as numbers with names have their names."""

    unit = "row"

    def __init__(self, name: str, rows: datasets.Dataset) -> None:
        self.source = name
        self._rows = rows
        self.columns = tuple(rows.column_names)
        self._names = {
            column: feature.names
            for column, feature in rows.features.items()
            if isinstance(feature, datasets.ClassLabel)
        }

    @property
    def unlabelled(self) -> bool:
        """Whether it keeps its labels to itself, as the test splits of some benchmarks do."""
        labels = [row.values[column] for row in self.sample() for column in self._names]
        return bool(labels) and all(label is None for label in labels)

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`; a label that is not given (-1) is None."""
        for number, values in enumerate(self._rows, start=1):
            for column, names in self._names.items():
                index = values[column]
                values[column] = None if index is None or index < 0 else names[index]
            yield Row(number, values)

    def fingerprint(self) -> str:
        return str(self._rows._fingerprint)


def open_hub(name: str, config: str | None, cache_dir: Path) -> Mapping[str, HubTable]:
    """The splits of a data set, by name.

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
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"task.hub={name} cannot be loaded: {reason}") from error
    return {split: HubTable(f"{name}, {split}", rows) for split, rows in found.items()}
