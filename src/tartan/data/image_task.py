"""Makes an end task of some classes of an image data set, with few labelled images each."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from tartan.configuration.options import Checked, Count, Natural
from tartan.core.seeding import generator_for
from tartan.data.end_task import EndTaskOfSource, Splits
from tartan.encoders.base import Encoder
from tartan.encoders.wide_resnet import require_image_encoder
from tartan.errors import UserError


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
        place = {label: index for index, label in enumerate(classes)}
        chosen = self.at(np.flatnonzero(np.isin(self.labels, list(classes))))
        labels = np.asarray([place[int(label)] for label in chosen.labels], dtype=np.int64)
        return LabelledImages(chosen.images, labels)

    def fingerprint(self) -> str:
        """Return the SHA-256 of shape, pixels and labels."""
        digest = hashlib.sha256(str(self.images.shape).encode())
        digest.update(np.ascontiguousarray(self.images).tobytes())
        digest.update(self.labels.astype(np.int64).tobytes())
        return digest.hexdigest()

    def rows(self, **columns: Sequence[bool]) -> datasets.Dataset:
        """Return rows with `image`, `label` and the further `columns`."""
        features = datasets.Features(
            {
                "image": datasets.Array3D(self.images.shape[1:], "uint8"),
                "label": datasets.Value("int64"),
                **{name: datasets.Value("bool") for name in columns},
            }
        )
        content = {"image": self.images, "label": self.labels, **columns}
        return datasets.Dataset.from_dict(content, features=features).with_format("numpy")


@dataclass(frozen=True)
class ImageSource(Checked, ABC):
    """An image data set of which some classes are the end task; subclasses read it.

    Attributes:
        name: the name the result is reported under.
        metric: the metric by which a checkpoint is chosen: a name under `metrics` in the config.
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
        """Read the data set.

        Returns:
            Training images, test images (None where the data set has no test split), and class
                names.

        Raises:
            UserError: the data cannot be read.
        """

    def load(self) -> ImageTask:
        """Choose the end task's images.

        Where the data set has no test split, the images that are neither in train nor in dev are
        the test.

        Raises:
            UserError: a class is unknown, or has too few images.
        """
        if not 2 <= len(set(self.end_classes)) == len(self.end_classes):
            raise UserError("task.end_classes needs at least two classes, each named once")
        classes = [str(name) for name in self.end_classes]  # a digit may come as a number
        pool, test, names = self.read()
        unknown = sorted(set(classes) - set(names))
        if unknown:
            raise UserError(f"task.end_classes: {self.name} has no classes {unknown}")
        end = [names.index(name) for name in classes]
        others = [index for index in range(len(names)) if index not in end]
        own = pool.of(end)
        train, dev, rest = self._split(own, classes)
        tested = own.at(rest) if test is None else test.of(end)
        if not len(tested):
            raise UserError(
                f"{self.name} has no images of task.end_classes to test on, beside those of "
                "task.train_per_class and task.dev_per_class"
            )
        return ImageTask(
            source=self,
            labels=tuple(classes),
            train=own.at(train),
            dev=own.at(dev),
            test=tested,
            others=pool.of(others),
            other_labels=tuple(names[index] for index in others),
        )

    def _split(
        self, own: LabelledImages, classes: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        wanted = self.train_per_class + self.dev_per_class
        parts: tuple[list[np.ndarray], ...] = ([], [], [])
        for label, name in enumerate(classes):
            places = np.flatnonzero(own.labels == label)
            if wanted > len(places):
                raise UserError(
                    f"task.train_per_class and task.dev_per_class ask for {wanted} images of "
                    f"{name}, but {self.name} has {len(places)}"
                )
            order = generator_for(self.split_seed, "images", name).permutation(places)
            for part, taken in zip(
                parts, np.split(order, [self.train_per_class, wanted]), strict=True
            ):
                part.append(taken)
        train, dev, rest = map(np.concatenate, parts)
        return train, dev, rest


@dataclass(frozen=True)
class ImageTask(EndTaskOfSource):
    """A labelled task on images, read and checked (see `EndTask`).

    Attributes:
        source: the data set that it was read from.
        labels: label names in index order.
        train: training images.
        dev: validation images.
        test: test images.
        others: training images of the data set's other classes, labelled from 0.
        other_labels: names of the other classes, in index order.
    """

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
    def fingerprints(self) -> dict[str, str]:
        return {
            split: images.fingerprint()
            for split, images in (("train", self.train), ("dev", self.dev), ("test", self.test))
        }

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return rows with `image`, `label` and `unseen`.

        Raises:
            UserError: the encoder does not read images, or reads another number of channels.
        """
        image_encoder = require_image_encoder(encoder, f"task {self.name}")
        channels = self.train.images.shape[1]
        if image_encoder.channels != channels:
            raise UserError(
                f"task {self.name} has images of {channels} channels, but encoder.mean has "
                f"{image_encoder.channels} values"
            )
        trained_on = {image.tobytes() for image in self.train.images}

        def rows(split: LabelledImages) -> datasets.Dataset:
            return split.rows(unseen=[i.tobytes() not in trained_on for i in split.images])

        return Splits(train=rows(self.train), dev=rows(self.dev), test=rows(self.test))
