"""Dev and test examples split off the training ones: every label keeps its share."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.data.file_task import FileTask
from src.data.held_out import HeldOut, stratified_splits
from src.errors import UserError
from tests.data.test_text_task import write

SOURCE = "train.jsonl"


def labels_of(counts):
    pairs = [(f"{label} {i}", label) for label, count in counts.items() for i in range(count)]
    return [label for _, label in sorted(pairs, key=lambda pair: pair[0][::-1])]  # mixed


def examples_of(counts):
    return [(f"{label} {i}", label) for i, label in enumerate(labels_of(counts))]


def parts_of(share, seed=0, splits=("dev",)):
    return [HeldOut(share, seed, split) for split in splits]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(5, 40), min_size=2),
    st.sampled_from([0.2, 0.3]),
    st.integers(0, 3),
    st.sampled_from([("dev",), ("test",), ("test", "dev")]),
)
def test_every_label_keeps_its_share_in_each_part(counts, share, seed, splits):
    labels = labels_of(counts)
    found = stratified_splits(labels, parts_of(share, seed, splits), SOURCE)
    assert set(found) == {"train", *splits}
    for split in splits:
        held = Counter(label for label, own in zip(labels, found, strict=True) if own == split)
        assert held.total() == round(share * len(labels))
        for label, count in counts.items():
            # of two parts, the second keeps the shares of what the first left
            assert abs(held[label] - share * count) <= len(splits)


def test_a_part_does_not_depend_on_whether_the_other_is_held_out_too():
    labels = labels_of({"a": 30, "b": 20})
    alone, both = (
        stratified_splits(labels, parts_of(0.2, splits=splits), SOURCE)
        for splits in (("test",), ("test", "dev"))
    )
    assert [i for i, s in enumerate(alone) if s == "test"] == [
        i for i, s in enumerate(both) if s == "test"
    ]


def test_nothing_is_held_out_where_nothing_is_asked_for():
    assert stratified_splits(["a", "b"], [], SOURCE) == ["train", "train"]


def test_the_seed_decides_and_nothing_else():
    labels = labels_of({"a": 30, "b": 20})
    splits = [stratified_splits(labels, parts_of(0.2, seed), SOURCE) for seed in (0, 0, 1)]
    assert splits[0] == splits[1]
    assert splits[0] != splits[2]


@pytest.mark.parametrize(
    ("count", "splits", "message"),
    [
        (
            1,
            ("dev",),
            "too few examples of 1 label to be in train and in dev, which takes at least 2 of "
            "each: 'b' has 1; add examples",
        ),
        (2, ("test", "dev"), "train and in test and in dev, which takes at least 3 .* 'b' has 2;"),
    ],
)
def test_a_label_with_too_few_examples_cannot_be_split(count, splits, message):
    labels = labels_of({"a": 30, "b": count})
    with pytest.raises(UserError, match=message):
        stratified_splits(labels, parts_of(0.2, splits=splits), SOURCE)


def test_all_labels_with_too_few_examples_are_named_and_those_that_look_alike():
    labels = labels_of({"a": 30, "bad": 20, "bad ": 1, "c": 2})
    said = (
        r"of 2 labels to be .*: 'bad ' has 1, 'c' has 2; add examples, remove the "
        r"rows, merge labels, or name .*\(labels differ in case, .* only: 'bad' and 'bad '\)$"
    )
    with pytest.raises(UserError, match=said):
        stratified_splits(labels, parts_of(0.2, splits=("test", "dev")), SOURCE)
    many = labels_of({"a": 30, **{f"r{number}": 1 for number in range(8)}})
    with pytest.raises(UserError, match="'r4' has 1 and 3 more; add examples"):
        stratified_splits(many, parts_of(0.2), SOURCE)


@pytest.mark.parametrize("prefix", ["task.", ""])
def test_labels_that_are_measured_numbers_are_said_to_be_no_classes(prefix):
    labels = [f"{0.13 * number:.2f}" for number in range(300)] + ["0.13"] * 5 + ["unknown"]
    said = (
        rf"of 300 labels .*: '0\.00' has 1, .* and 295 more; the column of labels looks like "
        rf"numbers, not classes; name another: {prefix}label=COLUMN, or make classes of the "
        "numbers$"
    )
    with pytest.raises(UserError, match=said):
        stratified_splits(labels, parts_of(0.2), SOURCE, prefix)
    stars = [str(1 + number % 4) for number in range(30)] + ["5"]
    with pytest.raises(UserError, match="'5' has 1; add examples"):
        stratified_splits(stars, parts_of(0.2), SOURCE, prefix)


@pytest.mark.parametrize(("test_share", "dev_share"), [(0.2, 0.2), (0.3, 0.5), (0.6, 0.2)])
@pytest.mark.parametrize("seed", range(8))
def test_one_example_more_than_there_are_parts_puts_a_label_in_every_split(
    test_share, dev_share, seed
):
    labels = labels_of({"a": 60, "b": 60, "c": 3})
    parts = [HeldOut(test_share, seed, "test"), HeldOut(dev_share, seed, "dev")]
    found = stratified_splits(labels, parts, SOURCE)
    assert Counter(found)["test"] == round(test_share * len(labels))
    assert Counter(found)["dev"] == round(dev_share * len(labels))
    rare = [split for split, label in zip(found, labels, strict=True) if label == "c"]
    assert sorted(rare) == ["dev", "test", "train"]
    assert found == stratified_splits(labels, parts, SOURCE)


@pytest.mark.parametrize("count", [3, 4])
def test_a_split_has_every_label_however_small_its_share(count):
    labels = labels_of({f"{number:02}": count for number in range(10)})
    found = stratified_splits(labels, parts_of(0.2, splits=("test", "dev")), SOURCE)
    by_split = {split: {name for own, name in zip(found, labels, strict=True) if own == split}
                for split in ("train", "dev", "test")}  # fmt: skip
    assert {split: len(own) for split, own in by_split.items()} == dict.fromkeys(by_split, 10)


def test_a_rare_label_that_is_held_out_is_trained_on_too(tmp_path):
    examples = examples_of({"a": 60, "b": 60, "c": 3})
    train = write(tmp_path / "train.jsonl", examples)
    options = {"name": "own", "metric": "macro_f1", "max_length": 16}
    shares = {"test_share": 0.3, "dev_share": 0.5}
    task = FileTask(train=str(train), **options, **shares).load()
    assert task.labels == ("a", "b", "c")
    assert set(task.train.labels) == set(task.dev.labels) == set(task.test.labels) == {0, 1, 2}


def task_of(tmp_path, **options):
    train = write(tmp_path / "train.jsonl", examples_of({"a": 20, "b": 10}))
    own = {"name": "own", "metric": "macro_f1", "max_length": 16}
    return FileTask(train=str(train), **own, **options).load()


def test_a_share_of_0_leaves_the_task_without_a_test_split(tmp_path):
    task = task_of(tmp_path, test_share=0)
    assert (len(task.train), len(task.dev), len(task.test)) == (24, 6, 0)
    assert task.assignment is not None
    assert [part.split for part in task.assignment.parts] == ["dev"]
    with_test = task_of(tmp_path, test_share=0.2)
    assert task.digest() != with_test.digest()
    dev = write(tmp_path / "dev.jsonl", [("new", "a")])
    assert task_of(tmp_path, dev=str(dev), test_share=0).assignment is None


def test_a_task_without_a_dev_file_has_one_of_its_training_examples(tmp_path):
    test = write(tmp_path / "test.jsonl", [("new", "a")])
    task = task_of(tmp_path, test=str(test))
    assert (len(task.train), len(task.dev), len(task.test)) == (24, 6, 1)
    assert all(task.dev.unseen)
    other = task_of(tmp_path, test=str(test), split_seed=1)
    assert task.fingerprints["train"] == other.fingerprints["train"]
    assert task.fingerprints["dev"] != other.fingerprints["dev"]
    assert task.digest() != other.digest()


def test_a_task_without_dev_and_test_files_has_both_of_its_training_examples(tmp_path):
    task = task_of(tmp_path)
    assert (len(task.train), len(task.dev), len(task.test)) == (18, 6, 6)
    parts = [set(part.texts) for part in (task.train, task.dev, task.test)]
    assert len(set.union(*parts)) == 30
    assert task.labels == ("a", "b")


def test_which_rows_went_where_is_told(tmp_path):
    task = task_of(tmp_path)
    lines = (tmp_path / "train.jsonl").read_text().splitlines()
    for split, example in task.assignment.rows:
        assert example.text in getattr(task, split).texts
        assert f'"{example.text}"' in lines[example.number - 1]
    summary = task.notes["split"]
    assert summary["train"] == {"examples": 18}
    assert (summary["test"]["share"], summary["test"]["examples"]) == (0.2, 6)
    held = [e.number for s, e in task.assignment.rows if s == "test"]
    found = [
        number
        for part in summary["test"]["lines"].split(", ")
        for number in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)
    ]
    assert found == held
