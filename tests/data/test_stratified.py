"""Parts drawn at random: dev, test and few labels; every label keeps its share."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartan.core.seeding import generator_for
from tartan.data.file_task import FileTask
from tartan.data.stratified import HeldOut, choose_labelled, stratified_splits, with_every_label
from tartan.data.text_auxiliary import training_texts
from tartan.errors import UserError
from tests.data.test_text_task import task_of, write

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


def own_task_of(tmp_path, **options):
    train = write(tmp_path / "train.jsonl", examples_of({"a": 20, "b": 10}))
    own = {"name": "own", "metric": "macro_f1", "max_length": 16}
    return FileTask(train=str(train), **own, **options).load()


def test_a_share_of_0_leaves_the_task_without_a_test_split(tmp_path):
    task = own_task_of(tmp_path, test_share=0)
    assert (len(task.train), len(task.dev), len(task.test)) == (24, 6, 0)
    assert task.assignment is not None
    assert [part.split for part in task.assignment.parts] == ["dev"]
    with_test = own_task_of(tmp_path, test_share=0.2)
    assert task.digest() != with_test.digest()
    dev = write(tmp_path / "dev.jsonl", [("new", "a")])
    assert own_task_of(tmp_path, dev=str(dev), test_share=0).assignment is None


def test_a_task_without_a_dev_file_has_one_of_its_training_examples(tmp_path):
    test = write(tmp_path / "test.jsonl", [("new", "a")])
    task = own_task_of(tmp_path, test=str(test))
    assert (len(task.train), len(task.dev), len(task.test)) == (24, 6, 1)
    assert all(task.dev.unseen)
    other = own_task_of(tmp_path, test=str(test), split_seed=1)
    assert task.fingerprints["train"] == other.fingerprints["train"]
    assert task.fingerprints["dev"] != other.fingerprints["dev"]
    assert task.digest() != other.digest()


def test_a_task_without_dev_and_test_files_has_both_of_its_training_examples(tmp_path):
    task = own_task_of(tmp_path)
    assert (len(task.train), len(task.dev), len(task.test)) == (18, 6, 6)
    parts = [set(part.texts) for part in (task.train, task.dev, task.test)]
    assert len(set.union(*parts)) == 30
    assert task.labels == ("a", "b")


def test_which_rows_went_where_is_told(tmp_path):
    task = own_task_of(tmp_path)
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


TRAIN = [(f"text {i}", "ab"[i % 3 == 0]) for i in range(30)]
DEV, TEST = [("text 1", "a"), ("new", "b")], [("other", "a"), ("text 2", "b")]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(4, 40), min_size=2),
    st.sampled_from([0.3, 0.5]),
    st.integers(0, 3),
)
def test_so_many_keep_their_labels_and_every_label_its_share(counts, share, seed):
    labels = labels_of(counts)
    count = round(share * len(labels))
    chosen = choose_labelled(labels, count, seed, SOURCE)
    assert sum(chosen) == count
    kept = Counter(label for label, is_kept in zip(labels, chosen, strict=True) if is_kept)
    for label, number in counts.items():
        assert abs(kept[label] - count * number / len(labels)) <= 1


@pytest.mark.parametrize(
    ("counts", "count"), [({"a": 900, "b": 90, "c": 10}, 50), ({"a": 60, "b": 2, "c": 2}, 3)]
)
def test_a_rare_label_keeps_an_example_whatever_the_seed(counts, count):
    labels = labels_of(counts)
    kept = []
    for seed in range(30):
        chosen = choose_labelled(labels, count, seed, SOURCE)
        assert sum(chosen) == count
        kept.append([i for i, is_kept in enumerate(chosen) if is_kept])
        assert {labels[i] for i in kept[-1]} == set(counts)
    assert len({i for own in kept for i in own if labels[i] == "c"}) > 1  # not always the same


def test_the_choice_follows_its_seed():
    labels = labels_of({"a": 30, "b": 20})
    first, again, other = (choose_labelled(labels, 10, seed, SOURCE) for seed in (0, 0, 1))
    assert first == again != other


def test_as_many_as_there_are_keep_all():
    assert choose_labelled(["a", "b", "a"], 3, 0, SOURCE) == [True] * 3


@pytest.mark.parametrize(
    ("counts", "asked", "message"),
    [
        ({"a": 6, "b": 4}, 0, "must be at least the 2 labels"),
        ({"a": 6, "b": 4}, 11, "task.labelled=11 must be at least the 2 labels and leave"),
        ({"a": 6, "b": 4}, 1, "must be at least the 2 labels"),
        ({"a": 6, "b": 1}, 4, "label 'b' has one training example only"),
    ],
)
def test_an_impossible_budget_is_refused(counts, asked, message):
    with pytest.raises(UserError, match=message):
        choose_labelled(labels_of(counts), asked, 0, SOURCE)


def test_the_others_stay_as_text_of_the_task(tmp_path):
    files = task_of(tmp_path, TRAIN, DEV, TEST)
    whole = files.load()
    few = type(files)(**{**vars(files), "labelled": 9, "split_seed": 4}).load()
    assert len(few.train) == 9
    assert few.labels == whole.labels
    assert sorted(training_texts(few).texts["text"]) == sorted(text for text, _ in TRAIN)
    assert training_texts(few).fingerprint != training_texts(whole).fingerprint
    # the model reads those texts too: what is unseen is in none of them
    assert few.dev.unseen == whole.dev.unseen == [False, True]
    assert few.test.unseen == whole.test.unseen == [True, False]
    assert few.fingerprints["test"] == whole.fingerprints["test"]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(3, 9), min_size=2),
    st.sampled_from([(1, 1), (1, 2), (1, 0)]),
    st.randoms(use_true_random=False),
    st.integers(0, 2),
)
def test_each_part_has_enough_of_every_label(counts, least, random, seed):
    labels = [label for label, count in counts.items() for _ in range(count)]
    order = random.sample(range(len(labels)), len(labels))
    fewest, most = least[0] * len(counts), len(labels) - least[1] * len(counts)
    cut = random.randint(fewest, most)
    before = (order[:cut], order[cut:])
    parts = with_every_label(labels, *before, least, generator_for(seed, "test"))
    assert [len(part) for part in parts] == [len(part) for part in before]
    assert sorted([*parts[0], *parts[1]]) == sorted(order)
    lacking = 0
    for old, new, fewest in zip(before, parts, least, strict=True):
        held, has = (Counter(labels[index] for index in part) for part in (old, new))
        assert all(has[label] >= fewest for label in counts)
        lacking += sum(max(fewest - held[label], 0) for label in counts)
    assert len(set(parts[0]) - set(before[0])) <= lacking
    if not lacking:
        assert parts == (before[0], before[1])
