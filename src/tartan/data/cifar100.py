"""Loads CIFAR-100 (Krizhevsky, 2009), the images of the paper's appendix A.4."""

from __future__ import annotations

import glob
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import datasets
import numpy as np
import pyarrow
from datasets.exceptions import DatasetsError
from huggingface_hub import constants

from tartan.data.image_task import ImageSource, LabelledImages
from tartan.errors import UserError
from tartan.files.reachable import check_reachable

log = logging.getLogger(__name__)

_OFFLINE = "offline, use data_dir=FOLDER, with its Parquet files in FOLDER/cifar100"
"""Advice at the end of a message, for a machine without a connection."""


@dataclass(frozen=True)
class Cifar100Task(ImageSource):
    """Some of CIFAR-100's 100 classes as the end task, with the data set's own test split.

    Attributes:
        hub: name of the data set on the Hugging Face Hub.
        cache_dir: folder for the downloaded data set.
        data_dir: a folder that holds a copy of it in `cifar100/`: Parquet files whose names begin
            with `train` and `test`, at any depth; None reads it from the Hub.
        image_column: the column that holds the image.
        label_column: the column that holds the class (fine label).
    """

    hub: str
    cache_dir: str
    data_dir: str | None = None
    image_column: str = "img"
    label_column: str = "fine_label"

    def read(self) -> tuple[LabelledImages, LabelledImages | None, Sequence[str]]:
        """Return the data set's train and test splits, and the names of the classes.

        Raises:
            UserError: the splits cannot be read, or lack a column.
        """
        train, test = self._rows("train"), self._rows("test")
        kind = train.features.get(self.label_column)
        if not isinstance(kind, datasets.ClassLabel):
            raise UserError(
                f"{self.name}: the column {self.label_column!r} does not name its classes; "
                "use the Parquet files of the Hub's data set"
            )
        return self._arrays(train), self._arrays(test), list(kind.names)

    def _rows(self, split: str) -> datasets.Dataset:
        cache = str(Path(self.cache_dir).expanduser() / "datasets")
        try:
            if self.data_dir is None:
                if not constants.HF_HUB_OFFLINE:  # offline, it may still be in the Hub's cache
                    check_reachable(constants.ENDPOINT, f"data set {self.hub}", _OFFLINE)
                rows = datasets.load_dataset(self.hub, split=split, cache_dir=cache)
            else:
                folder = Path(self.data_dir).expanduser() / "cifar100"
                files = sorted(folder.glob(f"**/{split}*.parquet"))
                if not files:
                    raise UserError(
                        f"{folder} holds no {split}*.parquet; copy the files of the Hub's data set "
                        f"{self.hub} there (leave data_dir out to download it)"
                    )
                named = [glob.escape(str(path)) for path in files]
                rows = datasets.load_dataset(
                    "parquet", data_files=named, split="train", cache_dir=cache
                )
        except (OSError, ValueError, pyarrow.ArrowException, DatasetsError) as error:
            hub = self.data_dir is None
            where = f"{self.hub} from the Hub" if hub else f"{self.data_dir}/cifar100"
            reason = str(error.__cause__ or error).splitlines()[0]
            advice = f"; {_OFFLINE}" if hub else ""
            raise UserError(f"could not load {where}: {reason}{advice}") from error
        missing = {self.image_column, self.label_column} - set(rows.column_names)
        if missing:
            raise UserError(f"{self.name} has no columns {sorted(missing)}")
        if not isinstance(rows.features[self.image_column], datasets.Image):
            raise UserError(f"{self.name}: the column {self.image_column!r} does not hold images")
        return rows

    def _arrays(self, rows: datasets.Dataset) -> LabelledImages:
        log.info("decoding %s images", f"{len(rows):,}")
        images = np.stack(
            [np.asarray(image.convert("RGB"), dtype=np.uint8) for image in rows[self.image_column]]
        )
        labels = np.asarray(rows[self.label_column], dtype=np.int64)
        return LabelledImages(images.transpose(0, 3, 1, 2), labels)
