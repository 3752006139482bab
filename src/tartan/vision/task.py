"""Tasks of images: some classes of a data set, and the other classes as auxiliary task."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import datasets
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from tartan.core.seeding import generator_for
from tartan.core.task import Batch, Inputs, MicroBatch
from tartan.data.end_task import EndTask, Splits
from tartan.data.prepared import AuxiliaryContext, AuxiliaryExamples, choose_rows, size_of
from tartan.data.table import load_from_hub
from tartan.encoders.base import Encoder
from tartan.errors import UserError, first_line
from tartan.objectives.base import Batching, Collate, Row
from tartan.objectives.classification import ClassWeights, Supervised
from tartan.settings import Below1, Checked, Count, Natural, Size
from tartan.vision.wide_resnet import ImageEncoder, require_image_encoder


@dataclass(frozen=True)
class ImageClassification(Checked, Supervised):
    """Classifies images; a unit is an image.

    Attributes:
        classes: number of labels.
        shift: maximum distance by which training images are shifted at random in each direction;
            zeros fill the border [pixels].
        flip: whether to mirror training images, left to right, with probability 1/2.
        class_weights: see `Supervised`.
        label_smoothing: see `Supervised`.
    """

    classes: int
    shift: Natural = 0
    flip: bool = False
    class_weights: ClassWeights = None
    label_smoothing: Below1 = 0.0

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        features: Tensor = body(inputs["images"])
        return features

    def new_head(self, encoder: ImageEncoder) -> nn.Module:
        return nn.Linear(encoder.hidden_size, self.classes)

    def collate(
        self, encoder: ImageEncoder, micro_batch_size: int, **how: Unpack[Batching]
    ) -> Collate:
        require_image_encoder(encoder, "classifier=images")
        return partial(self._batch, encoder, micro_batch_size, how.get("training", True))

    def _batch(
        self,
        encoder: ImageEncoder,
        micro_batch_size: int,
        training: bool,
        rows: Sequence[Row],
        rng: np.random.Generator,
    ) -> Batch:
        pixels = np.stack([np.asarray(row["image"], dtype=np.uint8) for row in rows])
        if training:
            pixels = self._augmented(pixels, rng)
        scale = np.asarray([encoder.mean, encoder.std], dtype=np.float32)
        mean, std = scale[:, :, None, None]
        images = torch.from_numpy((pixels.astype(np.float32) / 255 - mean) / std)
        inputs = {
            "images": images.to(torch.get_default_dtype()),
            "labels": torch.tensor([int(row["label"]) for row in rows]),
            "unseen": torch.tensor([bool(row.get("unseen", False)) for row in rows]),
        }
        parts = []
        for start in range(0, len(rows), micro_batch_size):
            part = {k: v[start : start + micro_batch_size] for k, v in inputs.items()}
            count = len(part["labels"])
            parts.append(MicroBatch(part, units=count, examples=count))
        return Batch(parts, examples=len(rows))

    def _augmented(self, pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return `pixels`, `(n, channels, height, width)`, randomly mirrored and shifted."""
        if self.flip:
            mirrored = rng.random(len(pixels)) < 0.5
            pixels = np.where(mirrored[:, None, None, None], pixels[..., ::-1], pixels)
        if not self.shift:
            return pixels
        height, width = pixels.shape[2:]
        border = (self.shift, self.shift)
        padded = np.pad(pixels, ((0, 0), (0, 0), border, border))
        corners = rng.integers(0, 2 * self.shift + 1, (len(pixels), 2))
        shifted = zip(padded, corners, strict=True)
        return np.stack([image[:, y : y + height, x : x + width] for image, (y, x) in shifted])


@dataclass(frozen=True)
class LabelledImages:
    """Images, uint8 `(n, channels, height, width)`, and their labels as indices, `(n,)`."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, indices: np.ndarray) -> LabelledImages:
        return LabelledImages(self.images[indices], self.labels[indices])

    def of(self, classes: Sequence[int]) -> LabelledImages:
        """Return the images of `classes`, labelled by the classes' positions in that list."""
        chosen = self.at(np.flatnonzero(np.isin(self.labels, list(classes))))
        labels = [classes.index(int(label)) for label in chosen.labels]
        return LabelledImages(chosen.images, np.asarray(labels, dtype=np.int64))

    def fingerprint(self) -> str:
        digest = hashlib.sha256(str(self.images.shape).encode())
        digest.update(np.ascontiguousarray(self.images).tobytes())
        digest.update(self.labels.astype(np.int64).tobytes())
        return digest.hexdigest()

    def rows(self, **columns: Sequence[bool]) -> datasets.Dataset:
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
            with `train` and `test`; None reads it from the Hub.
    """

    hub: str
    cache_dir: str
    data_dir: str | None = None

    def read(self) -> tuple[LabelledImages, LabelledImages, Sequence[str]]:
        local = None if self.data_dir is None else Path(self.data_dir).expanduser() / "cifar100"
        if local is not None and not local.is_dir():
            raise UserError(f"{local} does not exist; it has to hold the data set's Parquet files")
        cache = Path(self.cache_dir).expanduser()
        splits = load_from_hub(f"task.hub={self.hub}", str(local or self.hub), None, None, cache)
        try:
            names = list(splits["train"].features["fine_label"].names)
            return _images_of(splits["train"]), _images_of(splits["test"]), names
        except Exception as error:  # other columns or splits, or images that are none
            raise UserError(f"cannot read {local or self.hub}: {first_line(error)}") from error


def _images_of(rows: datasets.Dataset) -> LabelledImages:
    images = np.stack([np.asarray(image.convert("RGB"), np.uint8) for image in rows["img"]])
    labels = np.asarray(rows["fine_label"], dtype=np.int64)
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
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def fingerprints(self) -> dict[str, str]:  # type: ignore[override]
        return {split: getattr(self, split).fingerprint() for split in ("train", "dev", "test")}

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
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
        task, options = context.task, context.options
        if not isinstance(task, ImageTask) or len(task.other_labels) < 2:
            raise UserError(f"auxiliary {name} needs a task of images with two other classes")
        if options.decontaminate:
            raise UserError("auxiliary.decontaminate=true is for text; leave it out for images")
        self.check(name, context.encoder)
        size, option = size_of(name, self.size, options.size)
        source, images = f"{task.name} other classes", task.others
        if size is not None:
            trained = len(task.train)
            chosen = choose_rows(len(images), size, trained, options.seed, option, source)
            images = images.at(chosen)
        objective = ImageClassification(len(task.other_labels), self.shift, self.flip)
        return AuxiliaryExamples(objective, images.rows(), source, size, images.fingerprint())
