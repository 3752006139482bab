"""A small image data set of which every picture is known by its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tartan.settings import Count
from tartan.vision.task import ImageSource, LabelledImages

NAMES = ("ant", "bee", "cat", "dog", "eel")


def numbered(count: int, first: int = 0, channels: int = 2) -> LabelledImages:
    """Images of which the first two pixels hold the number, counted from `first`.

    The classes take turns.
    """
    numbers = np.arange(first, first + count)
    images = np.random.default_rng(0).integers(0, 256, (count, channels, 3, 4), dtype=np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = numbers // 256, numbers % 256
    return LabelledImages(images, numbers % len(NAMES))


def numbers_of(images: Any) -> list[int]:
    """The numbers of images, in their order."""
    return [int(image[0][0][0]) * 256 + int(image[0][0][1]) for image in images]


@dataclass(frozen=True)
class MadeUpImages(ImageSource):
    """Given images as a data set; by default 12 of each of five classes, and no test split."""

    name: str = "made up"
    metric: str = "macro_f1"
    end_classes: Sequence[str | int] = ("dog", "bee")
    train_per_class: Count = 4
    dev_per_class: Count = 3
    split_seed: int = 0
    mean: Sequence[float] = (0.5, 0.5)
    std: Sequence[float] = (0.25, 0.25)
    pool: LabelledImages | None = None
    held_out: LabelledImages | None = None

    def read(self) -> tuple[LabelledImages, LabelledImages | None, Sequence[str]]:
        return numbered(60) if self.pool is None else self.pool, self.held_out, NAMES
