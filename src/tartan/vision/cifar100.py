"""Loads CIFAR-100 (Krizhevsky, 2009), the images of the paper's appendix A.4."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import datasets
import numpy as np
import pyarrow
from datasets.exceptions import DatasetsError
from huggingface_hub import constants

from tartan.errors import UserError, first_line
from tartan.files import check_reachable
from tartan.vision.task import ImageSource, LabelledImages

_OFFLINE = "offline, use data_dir=FOLDER, with its Parquet files in FOLDER/cifar100"


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
        """Return the data set's train and test splits, and the names of the classes."""
        try:
            train, test = self._rows("train"), self._rows("test")
            names = list(train.features[self.label_column].names)
            return self._arrays(train), self._arrays(test), names
        except (KeyError, AttributeError, ValueError) as error:
            raise UserError(
                f"{self.name} has no column {self.image_column!r} of images and "
                f"{self.label_column!r} of named classes; use the Parquet files of {self.hub}"
            ) from error

    def _rows(self, split: str) -> datasets.Dataset:
        cache = str(Path(self.cache_dir).expanduser() / "datasets")
        try:
            if self.data_dir is None:
                if not constants.HF_HUB_OFFLINE:  # offline, it may still be in the Hub's cache
                    check_reachable(constants.ENDPOINT, f"data set {self.hub}", _OFFLINE)
                return datasets.load_dataset(self.hub, split=split, cache_dir=cache)
            folder = Path(self.data_dir).expanduser() / "cifar100"
            files = [glob.escape(str(path)) for path in sorted(folder.glob(f"**/{split}*.parquet"))]
            if not files:
                raise UserError(f"{folder} holds no {split}*.parquet of the Hub's {self.hub}")
            return datasets.load_dataset(
                "parquet", data_files=files, split="train", cache_dir=cache
            )
        except (OSError, ValueError, pyarrow.ArrowException, DatasetsError) as error:
            reason = first_line(error.__cause__ or error)
            source = self.hub if self.data_dir is None else f"{self.data_dir}/cifar100"
            raise UserError(f"could not load {source}: {reason}; {_OFFLINE}") from error

    def _arrays(self, rows: datasets.Dataset) -> LabelledImages:
        images = np.stack(
            [np.asarray(image.convert("RGB"), dtype=np.uint8) for image in rows[self.image_column]]
        )
        labels = np.asarray(rows[self.label_column], dtype=np.int64)
        return LabelledImages(images.transpose(0, 3, 1, 2), labels)
