"""The images of the classes that the end task leaves, as an auxiliary task."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.auxiliary import AuxiliaryContext
from tartan.data.file_task import FileTask
from tartan.data.other_classes import OtherClasses
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import TinyEncoder
from tartan.encoders.wide_resnet import WideResNetSource
from tartan.errors import UserError
from tartan.objectives.image_classification import ImageClassification
from tartan.objectives.masked_lm import MaskedLM
from tests.data.made_up_images import NAMES, MadeUpImages, numbered, numbers_of

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


def test_images_and_labels_are_the_tasks():
    task = MadeUpImages(held_out=numbered(20, first=60)).load()
    found = OtherClasses().examples("other_classes", around(task))
    np.testing.assert_array_equal(found.rows["image"][:], task.others.images)
    assert found.rows["label"][:].tolist() == task.others.labels.tolist()
    assert found.fingerprint == task.others.fingerprint()


def test_the_head_knows_every_other_class():
    task = MadeUpImages(end_classes=("eel", "ant")).load()
    found = OtherClasses(shift=2, flip=True).examples("other_classes", around(task))
    assert found.objective == ImageClassification(classes=3, shift=2, flip=True)
    assert sorted(set(found.rows["label"][:].tolist())) == [0, 1, 2]


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


def test_the_choice_is_a_function_of_the_auxiliary_seed_alone():
    first, again, other = (
        examples(size=2, surroundings={"seed": seed}).fingerprint for seed in (0, 0, 1)
    )
    assert first == again != other
    by_split = [chosen(size=2, source=MadeUpImages(split_seed=seed)) for seed in (0, 1)]
    assert by_split[0] == by_split[1]


def test_every_size_has_its_own_fingerprint():
    assert len({examples(size=size).fingerprint for size in (1, 2, 4, "all")}) == 4


def test_without_a_size_of_its_own_the_one_for_all_holds():
    found = examples(surroundings={"default_size": 3})
    assert (found.size, len(found.rows)) == (3.0, 24)
    assert examples(surroundings={"default_size": "all"}).size is None
    assert examples(size=1, surroundings={"default_size": 3}).size == 1.0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"size": 5}, r"^auxiliary\.mine\.size=5 asks for 40 .* made up other classes has 36"),
        ({"size": 0.01}, r"^auxiliary\.mine\.size=0\.01 asks for no examples"),
        ({"size": 0}, r"^size must be a finite number above 0"),
        ({"surroundings": {"default_size": 5}}, r"^auxiliary\.size=5 asks for 40"),
        ({"shift": -1}, r"^shift must be a whole number"),
    ],
    ids=str,
)
def test_a_bad_option_is_named(options, named):
    with pytest.raises(UserError, match=named) as caught:
        examples(name="mine", **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", ["all", 1])
def test_without_other_classes_there_is_no_such_task(size):
    with pytest.raises(UserError, match="made up"):
        examples(size=size, source=MadeUpImages(end_classes=NAMES))


def test_its_images_are_not_the_end_tasks_own():
    assert OtherClasses().kind == "domain"  # as stages choose by


def test_an_encoder_of_text_is_refused():
    with pytest.raises(UserError, match="auxiliary mine needs an encoder of images, but tiny is"):
        OtherClasses().check("mine", TinyEncoder().load())
    OtherClasses().check("mine", ENCODER)


@pytest.fixture
def text_task(data_dir):
    paths = {split: str(data_dir / "toy" / f"{split}.jsonl") for split in ("train", "dev", "test")}
    return FileTask(name="toy", metric="macro_f1", max_length=20, **paths).load()


def test_a_text_task_has_no_other_classes(text_task):
    with pytest.raises(UserError, match="auxiliary mine is images, but task toy is not"):
        OtherClasses().examples("mine", around(text_task))


@pytest.mark.parametrize("text", ["task", "domain"])
def test_an_image_task_has_no_text(text):
    auxiliary = TextAuxiliary(objective=MaskedLM(), text=text)
    task = MadeUpImages().load()
    with pytest.raises(UserError, match="auxiliary mine is text, but task made up is not"):
        auxiliary.examples("mine", around(task, encoder=TinyEncoder().load()))
    with pytest.raises(UserError, match="auxiliary mine needs an encoder of text"):
        auxiliary.check("mine", ENCODER)
