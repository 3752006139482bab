"""Which images of a data set become the end task's splits, and which are left to the others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.prepared import AuxiliaryContext, AuxiliarySettings
from tartan.errors import UserError
from tartan.vision.task import LabelledImages, OtherClasses
from tartan.vision.wide_resnet import WideResNetSource
from tests.vision.made_up_images import NAMES, MadeUpImages, numbered, numbers_of

SPLITS = ("train", "dev", "test")

end_classes = st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True)


def encoder(channels=2):
    half = (0.5,) * channels
    return WideResNetSource(mean=half, std=half, depth=10, width=1).load()


def numbers_by_split(task):
    return {split: numbers_of(getattr(task, split).images) for split in SPLITS}


@settings(max_examples=50)
@given(
    classes=end_classes,
    train=st.integers(1, 8),
    dev=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_every_image_of_the_data_set_has_one_place(classes, train, dev, seed):
    task = MadeUpImages(
        end_classes=classes, train_per_class=train, dev_per_class=dev, split_seed=seed
    ).load()
    sizes = dict(zip(SPLITS, (train, dev, 12 - train - dev), strict=True))
    for split, size in sizes.items():
        assert np.bincount(getattr(task, split).labels).tolist() == [size] * len(classes)
    placed = itertools.chain(*numbers_by_split(task).values(), numbers_of(task.others.images))
    assert sorted(placed) == list(range(60))


def test_a_test_split_of_the_data_set_is_the_test_and_is_never_chosen_from():
    task = MadeUpImages(held_out=numbered(20, first=60)).load()
    found = numbers_by_split(task)
    assert found["test"] == [n for n in range(60, 80) if NAMES[n % len(NAMES)] in ("dog", "bee")]
    assert (len(found["train"]), len(found["dev"])) == (8, 6)
    assert max(found["train"] + found["dev"]) < 60


@pytest.mark.parametrize("separate_test", [False, True])
def test_an_image_whose_pixels_were_trained_on_is_not_unseen(separate_test):
    images = numbered(60).images.copy()
    images[30:] = images[:30]  # every image twice
    pool = LabelledImages(images, np.arange(60) % len(NAMES))
    held_out = LabelledImages(images[:20], np.arange(20) % len(NAMES)) if separate_test else None
    task = MadeUpImages(pool=pool, held_out=held_out, train_per_class=6).load()
    splits = task.splits(encoder(), None)
    found = numbers_by_split(task)
    for split in SPLITS:
        expected = [number not in found["train"] for number in found[split]]
        assert getattr(splits, split)["unseen"][:].tolist() == expected
    assert not any(splits.train["unseen"])
    for rows in (splits.dev, splits.test):
        assert 0 < sum(rows["unseen"]) < len(rows)


@pytest.mark.parametrize("channels", [1, 3])
def test_an_encoder_of_other_channels_is_refused(channels):
    with pytest.raises(UserError, match=rf"encoder\.mean has {channels} values"):
        MadeUpImages().load().splits(encoder(channels), None)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"end_classes": ("ant", "fly")}, r"task\.end_classes"),
        ({"end_classes": ("ant", "bee", "ant")}, r"task\.end_classes"),
        ({"end_classes": ("ant",)}, r"task\.end_classes"),
        ({"train_per_class": 10}, r"task\.train_per_class"),
        ({"train_per_class": 9}, r"task\.train_per_class"),  # none are left to test on
    ],
    ids=str,
)
def test_a_choice_that_cannot_be_made_is_an_error(options, named):
    with pytest.raises(UserError, match=named):
        MadeUpImages(**options).load()


def other_classes(size, seed=0, default="all", **options):
    task = MadeUpImages(**options).load()
    context = AuxiliaryContext(task, encoder(), AuxiliarySettings(default, seed), None)
    return OtherClasses(size=size).examples("mine", context)


def test_all_other_classes_are_an_auxiliary_task():
    examples = other_classes("all", default=1)
    numbers = numbers_of(examples.rows["image"][:])
    assert numbers == [n for n in range(60) if NAMES[n % len(NAMES)] not in ("dog", "bee")]
    assert (examples.size, examples.objective.classes) == (None, 3)


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(1, 4), min_size=2, max_size=2), seed=st.integers(0, 1000))
def test_a_size_is_in_training_images_and_a_smaller_choice_is_part_of_a_larger_one(sizes, seed):
    task, chosen = MadeUpImages().load(), []
    for size in sorted(sizes):
        rows = other_classes(size, seed).rows
        numbers = numbers_of(rows["image"][:])
        chosen.append(set(numbers))
        assert len(numbers) == 8 * size
        labels = [task.other_labels[label] for label in rows["label"][:]]
        assert labels == [NAMES[n % len(NAMES)] for n in numbers]
    assert chosen[0] <= chosen[1]
