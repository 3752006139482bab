"""Classification of images, as the end task or as an auxiliary task with other classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from tartan.core.task import Batch, Inputs, MicroBatch
from tartan.objectives.base import Collate, Row
from tartan.objectives.classification import ClassWeights, Supervised
from tartan.settings import Below1, Checked, Natural
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
        """Return the body's features, `(images, hidden)`."""
        features: Tensor = body(inputs["images"])
        return features

    def new_head(self, encoder: ImageEncoder) -> nn.Module:
        return nn.Linear(encoder.hidden_size, self.classes)

    def collate(
        self,
        encoder: ImageEncoder,
        micro_batch_size: int,
        *,
        training: bool = True,
        packed: bool = False,
        on_cpu: bool = False,
    ) -> Collate:
        """See `TaskObjective.collate`; only training images are shifted and flipped."""
        require_image_encoder(encoder, "classifier=images")
        return partial(self._batch, encoder, micro_batch_size, training)

    def _batch(
        self,
        encoder: ImageEncoder,
        micro_batch_size: int,
        training: bool,
        rows: Sequence[Row],
        rng: np.random.Generator,
    ) -> Batch:
        """Augment, normalise and split images, uint8 `(channels, height, width)` each."""
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
