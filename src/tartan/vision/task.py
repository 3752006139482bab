"""End tasks of some classes of an image data set, with the other classes as auxiliary task."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from sklearn.datasets import load_digits

from tartan.core.seeding import generator_for
from tartan.data.auxiliary import AuxiliaryContext, AuxiliaryExamples, size_of
from tartan.data.end_task import EndTask, Splits
from tartan.data.order import choose_rows
from tartan.encoders.base import Encoder
from tartan.errors import UserError, first_line
from tartan.settings import Checked, Count, Natural, Size
from tartan.vision.classification import ImageClassification
from tartan.vision.wide_resnet import require_image_encoder


@dataclass(frozen=True)
class LabelledImages:
    """Images, uint8 `(n, channels, height, width)`, and their labels as indices, `(n,)`."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, indices: np.ndarray) -> LabelledImages:
        """Return the images at `indices`, int `(n,)`."""
        return LabelledImages(self.images[indices], self.labels[indices])

    def of(self, classes: Sequence[int]) -> LabelledImages:
        """Return the images of `classes`, labelled by the classes' positions in that list."""
        chosen = self.at(np.flatnonzero(np.isin(self.labels, list(classes))))
        labels = [classes.index(int(label)) for label in chosen.labels]
        return LabelledImages(chosen.images, np.asarray(labels, dtype=np.int64))

    def fingerprint(self) -> str:
        """Return the SHA-256 of shape, pixels and labels."""
        digest = hashlib.sha256(str(self.images.shape).encode())
        digest.update(np.ascontiguousarray(self.images).tobytes())
        digest.update(self.labels.astype(np.int64).tobytes())
        return digest.hexdigest()

    def rows(self, **columns: Sequence[bool]) -> datasets.Dataset:
        """Return rows with `image`, `label` and the further `columns`."""
        features = {
            "image": datasets.Array3D(self.images.shape[1:], "uint8"),
            "label": datasets.Value("int64"),
            **{name: datasets.Value("bool") for name in columns},
        }
        content = {"image": self.images, "label": self.labels, **columns}
        rows = datasets.Dataset.from_dict(content, features=datasets.Features(features))
        return rows.with_format("numpy")


@dataclass(frozen=True)
class ImageSource(Checked, ABC):
    """An image data set of which some classes are the end task; subclasses read it.

    Attributes:
        name: the name the result is reported under.
        metric: the metric by which a checkpoint is chosen.
        end_classes: names of the end task's classes.
        train_per_class: labelled images of each class to train on [images].
        dev_per_class: the same for validation [images].
        split_seed: seed of the choice of both.
        mean: mean of each channel, of pixels scaled to [0, 1]; the encoder's config refers to it.
        std: standard deviation of each channel, of pixels scaled to [0, 1].
    """

    name: str
    metric: str
    end_classes: Sequence[str | int]
    train_per_class: Count
    dev_per_class: Count
    split_seed: Natural
    mean: Sequence[float]
    std: Sequence[float]

    @abstractmethod
    def read(self) -> tuple[LabelledImages, LabelledImages | None, Sequence[str]]:
        """Return training images, test images (None without a test split), and class names."""

    def load(self) -> ImageTask:
        """Choose the end task's images; without a test split, the rest is the test.

        Raises:
            UserError: a class is unknown, or has too few images.
        """
        classes = [str(name) for name in self.end_classes]  # a digit may come as a number
        pool, test, names = self.read()
        if len(set(classes) & set(names)) < max(2, len(classes)):
            raise UserError(f"task.end_classes={classes}: name two or more of {list(names)} once")
        end = [names.index(name) for name in classes]
        others = [index for index in range(len(names)) if index not in end]
        labelled = pool.of(end)
        train, dev, rest = self._split(labelled, classes)
        return ImageTask(
            source=self,
            labels=tuple(classes),
            train=labelled.at(train),
            dev=labelled.at(dev),
            test=labelled.at(rest) if test is None else test.of(end),
            others=pool.of(others),
            other_labels=tuple(names[index] for index in others),
        )

    def _split(self, labelled: LabelledImages, classes: Sequence[str]) -> list[np.ndarray]:
        """Return the indices of the images of train, dev and the rest."""
        wanted = self.train_per_class + self.dev_per_class
        by_class = []
        for label, name in enumerate(classes):
            places = np.flatnonzero(labelled.labels == label)
            if wanted >= len(places):
                raise UserError(
                    f"task.train_per_class and task.dev_per_class ask for {wanted} images of "
                    f"{name}, but {self.name} has {len(places)}"
                )
            order = generator_for(self.split_seed, "images", name).permutation(places)
            by_class.append(np.split(order, [self.train_per_class, wanted]))
        return [np.concatenate(places) for places in zip(*by_class, strict=True)]


@dataclass(frozen=True)
class DigitsTask(ImageSource):
    """Some of scikit-learn's ten digits: 1,797 scans of 8 x 8 pixels, about 180 a class."""

    def read(self) -> tuple[LabelledImages, None, Sequence[str]]:
        digits = load_digits()
        # 17 shades of grey, 0 to 16
        pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)[:, None]
        names = [str(name) for name in digits.target_names]
        return LabelledImages(pixels, digits.target.astype(np.int64)), None, names


@dataclass(frozen=True)
class Cifar100Task(ImageSource):
    """Some of the 100 classes of CIFAR-100 (Krizhevsky, 2009), with the data set's test split.

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

    def read(self) -> tuple[LabelledImages, LabelledImages, Sequence[str]]:
        cache = str(Path(self.cache_dir).expanduser() / "datasets")
        source, files = self.hub, None
        if self.data_dir is not None:
            source = str(Path(self.data_dir).expanduser() / "cifar100")
            files = {split: f"{source}/**/{split}*.parquet" for split in ("train", "test")}
        try:
            kind = "parquet" if files else self.hub
            splits = datasets.load_dataset(kind, data_files=files, cache_dir=cache)
            names = list(splits["train"].features[self.label_column].names)
            train, test = self._images(splits["train"]), self._images(splits["test"])
        except Exception as error:  # of many kinds: no connection, no column, no image
            reason = first_line(error.__cause__ or error)
            raise UserError(
                f"cannot read {source}: {reason}; offline, use data_dir=FOLDER, with its Parquet "
                "files in FOLDER/cifar100"
            ) from error
        return train, test, names

    def _images(self, rows: datasets.Dataset) -> LabelledImages:
        images = np.stack([np.asarray(i.convert("RGB"), np.uint8) for i in rows[self.image_column]])
        labels = np.asarray(rows[self.label_column], dtype=np.int64)
        return LabelledImages(images.transpose(0, 3, 1, 2), labels)


@dataclass(frozen=True)
class ImageTask(EndTask):
    """A labelled task on images (see `EndTask`), and the images of the data set's other classes."""

    source: ImageSource
    labels: tuple[str, ...]
    train: LabelledImages
    dev: LabelledImages
    test: LabelledImages
    others: LabelledImages
    other_labels: tuple[str, ...]

    @property
    def max_length(self) -> None:
        return None

    @property
    def label_counts(self) -> tuple[int, ...]:
        return tuple(np.bincount(self.train.labels, minlength=len(self.labels)).tolist())

    @property
    def notes(self) -> dict[str, Any]:
        return {}

    @property
    def fingerprints(self) -> dict[str, str]:  # type: ignore[override]
        return {split: getattr(self, split).fingerprint() for split in ("train", "dev", "test")}

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return rows with `image`, `label` and `unseen`, if the encoder reads such images."""
        mean = require_image_encoder(encoder, f"task {self.name}").mean
        channels = self.train.images.shape[1]
        if len(mean) != channels:  # one value would be broadcast
            raise UserError(
                f"encoder.mean has {len(mean)} values for images of {channels} channels"
            )
        trained_on = {image.tobytes() for image in self.train.images}

        def rows(split: LabelledImages) -> datasets.Dataset:
            return split.rows(unseen=[i.tobytes() not in trained_on for i in split.images])

        return Splits(train=rows(self.train), dev=rows(self.dev), test=rows(self.test))


@dataclass(frozen=True)
class OtherClasses(Checked):
    """Classifies images of the classes that are not in the end task (see `Auxiliary`).

    Attributes:
        size: images, in multiples of the end task's training images, or `all`; None takes
            `auxiliary.size`.
        shift: see `ImageClassification`.
        flip: see `ImageClassification`.
    """

    size: Size | None = None
    shift: Natural = 0
    flip: bool = False
    kind = "domain"
    left_out = False

    def check(self, name: str, encoder: Encoder) -> None:
        require_image_encoder(encoder, f"auxiliary {name}")

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """Return the other classes' training images, or as many of them as the size asks for."""
        task = context.end_task
        if not isinstance(task, ImageTask) or len(task.other_labels) < 2:
            raise UserError(f"auxiliary {name} needs a task of images with two other classes")
        if context.decontaminate:
            raise UserError("auxiliary.decontaminate=true is for text; leave it out for images")
        self.check(name, context.encoder)
        size, option = size_of(name, self.size, context.default_size)
        source, images = f"{task.name} other classes", task.others
        if size is not None:
            seed, trained = context.seed, context.train_examples
            images = images.at(choose_rows(len(images), size, trained, seed, option, source))
        objective = ImageClassification(len(task.other_labels), self.shift, self.flip)
        return AuxiliaryExamples(objective, images.rows(), source, size, images.fingerprint())
