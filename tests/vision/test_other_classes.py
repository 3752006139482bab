"""The images of the classes that the end task leaves, as an auxiliary task."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.auxiliary import AuxiliaryContext
from tartan.errors import UserError
from tartan.vision.task import OtherClasses
from tartan.vision.wide_resnet import WideResNetSource
from tests.vision.made_up_images import NAMES, MadeUpImages, numbers_of

ENCODER = WideResNetSource(mean=(0.5, 0.5), std=(0.5, 0.5), depth=10, width=1).load()
OTHERS = [n for n in range(60) if NAMES[n % len(NAMES)] not in ("dog", "bee")]


def around(end_task, train_examples=8, default_size="all", seed=0, encoder=ENCODER):
    return AuxiliaryContext(end_task, encoder, train_examples, default_size, seed, None)


def examples(name="other_classes", source=None, surroundings=None, **options):
    task = (source or MadeUpImages()).load()
    return OtherClasses(**options).examples(name, around(task, **(surroundings or {})))


def chosen(**options):
    return numbers_of(examples(**options).rows["image"][:])


def test_all_are_the_images_of_all_other_classes():
    found = examples(size="all", surroundings={"default_size": 1})
    assert numbers_of(found.rows["image"][:]) == OTHERS
    assert found.size is None
    assert found.source == "made up other classes"


@settings(max_examples=30)
@given(sizes=st.lists(st.integers(1, 4), min_size=2, max_size=2), seed=st.integers(0, 1000))
def test_a_size_is_in_training_images_and_a_smaller_choice_is_part_of_a_larger_one(sizes, seed):
    fewer, more = (chosen(size=size, surroundings={"seed": seed}) for size in sorted(sizes))
    assert [len(fewer), len(more)] == [8 * size for size in sorted(sizes)]
    assert set(fewer) <= set(more) <= set(OTHERS)
    assert more == sorted(more)


def test_labels_stay_with_the_images_that_are_chosen():
    found, task = examples(size=2), MadeUpImages().load()
    names = [task.other_labels[label] for label in found.rows["label"][:]]
    assert names == [NAMES[n % len(NAMES)] for n in numbers_of(found.rows["image"][:])]
    assert len(names) == 16
    assert found.objective.classes == 3


def test_a_size_that_cannot_be_chosen_is_an_error():
    with pytest.raises(UserError, match=r"^auxiliary\.mine\.size=5 asks for 40 .* has 36"):
        examples(name="mine", size=5)
    with pytest.raises(UserError, match="two or more other classes"):
        examples(source=MadeUpImages(end_classes=NAMES))
