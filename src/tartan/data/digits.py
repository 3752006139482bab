"""Loads scikit-learn's handwritten digits, a small image task that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from tartan.data.image_task import ImageSource, LabelledImages


@dataclass(frozen=True)
class DigitsTask(ImageSource):
    """Some of the ten digits as the end task: 1,797 scans of 8 x 8 pixels, about 180 a class."""

    def read(self) -> tuple[LabelledImages, LabelledImages | None, Sequence[str]]:
        """Return all scans as training images; the data set has no test split."""
        digits = load_digits()
        # 17 shades of grey, 0 to 16
        pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)[:, None]
        names = [str(name) for name in digits.target_names]
        return LabelledImages(pixels, digits.target.astype(np.int64)), None, names
