"""Classification of images: augmentation, normalisation, micro-batches and the loss."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.vision.task import ImageClassification
from tartan.vision.wide_resnet import WideResNetSource

MEAN, STD = (0.25, 0.5), (0.5, 0.2)
ENCODER = WideResNetSource(mean=MEAN, std=STD, depth=10, width=1).load()
HEIGHT, WIDTH = 4, 5


def rows_of(count, seed=0):
    """Return rows of random images in which no pixel is 0."""
    images = np.random.default_rng(seed).integers(1, 256, (count, 2, HEIGHT, WIDTH), dtype=np.uint8)
    return [
        {"image": image, "label": np.int64(n % 3), "unseen": np.bool_(n % 2)}
        for n, image in enumerate(images)
    ]


def collated(rows, micro=1000, seed=0, training=True, **options):
    collate = ImageClassification(3, **options).collate(ENCODER, micro, training=training)
    return collate(rows, np.random.Generator(np.random.Philox(seed)))


def whole(batch, name="images"):
    return torch.cat([part.inputs[name] for part in batch.micro_batches])


def pixels_of(batch):
    """Return the bytes of a batch's images before they were normalised."""
    mean, std = (torch.tensor(value).reshape(-1, 1, 1) for value in (MEAN, STD))
    pixels = (whole(batch) * std + mean) * 255
    torch.testing.assert_close(pixels, pixels.round(), rtol=0, atol=1e-3)
    return pixels.round().to(torch.uint8).numpy()


def variants(image, shift, flip):
    """Yield all augmentations of an image: `(mirrored, dy, dx)` and its pixels."""
    for mirrored, dy, dx in itertools.product(
        (False, True) if flip else (False,), *[range(-shift, shift + 1)] * 2
    ):
        shown = image[:, :, ::-1] if mirrored else image
        moved = np.zeros_like(shown)
        for y, x in itertools.product(range(HEIGHT), range(WIDTH)):
            if 0 <= y + dy < HEIGHT and 0 <= x + dx < WIDTH:
                moved[:, y + dy, x + dx] = shown[:, y, x]
        yield (mirrored, dy, dx), moved


def changes(batch, rows, shift, flip):
    """Return the augmentation of each image, as `(mirrored, dy, dx)`."""
    found = []
    for pixels, row in zip(pixels_of(batch), rows, strict=True):
        matching = [
            change
            for change, expected in variants(row["image"], shift, flip)
            if np.array_equal(pixels, expected)
        ]
        assert len(matching) == 1
        found += matching
    return found


def test_images_are_shifted_and_mirrored_in_all_ways():
    rows = rows_of(500)
    found = changes(collated(rows, shift=1, flip=True), rows, shift=1, flip=True)
    counts = {change: found.count(change) for change in set(found)}
    assert len(counts) == 18
    assert max(counts.values()) < 3 * min(counts.values())
    mirrored = sum(change[0] for change in found)
    assert abs(mirrored - 250) < 5 * 125**0.5  # five standard deviations


def test_augmentations_are_a_function_of_the_generator_alone():
    rows = rows_of(11)
    options = {"shift": 2, "flip": True}
    first = whole(collated(rows, seed=1, **options))
    for micro in (1, 4):
        torch.manual_seed(micro)
        np.random.seed(micro)
        assert torch.equal(whole(collated(rows, micro, seed=1, **options)), first)
    assert not torch.equal(whole(collated(rows, seed=2, **options)), first)


def test_evaluations_have_no_augmentations():
    rows = rows_of(20)
    found = collated(rows, shift=2, flip=True, training=False)
    np.testing.assert_array_equal(pixels_of(found), [row["image"] for row in rows])


@settings(max_examples=50)
@given(count=st.integers(1, 30), micro=st.integers(1, 40))
def test_micro_batches_are_the_batch_in_parts(count, micro):
    rows = rows_of(count)
    batch = collated(rows, micro)
    np.testing.assert_array_equal(pixels_of(batch), [row["image"] for row in rows])
    assert whole(batch, "labels").tolist() == [row["label"] for row in rows]
    assert whole(batch, "unseen").tolist() == [row["unseen"] for row in rows]
    sizes = [len(part.inputs["labels"]) for part in batch.micro_batches]
    assert len(sizes) == -(-count // micro)
    assert all(0 < size <= micro for size in sizes)
    for part, size in zip(batch.micro_batches, sizes, strict=True):
        assert (part.units, part.examples) == (size, size)
        assert {len(value) for value in part.inputs.values()} == {size}
    assert (batch.units, batch.examples, batch.tokens) == (count, count, 0)
