"""Splits drawn at random: every label keeps its share, or no text is in two splits."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tartan.core.seeding import generator_for
from tartan.data.file_task import FileTask
from tartan.data.paper_tasks import PaperTask
from tartan.data.splits import choose_labelled, clean_split, stratified_splits, with_every_label
from tartan.data.text_auxiliary import training_texts
from tartan.errors import UserError
from tests.data.test_file_task import task_of, write
from tests.in_process import config_of

SOURCE = "train.jsonl"


def labels_of(counts):
    pairs = [(f"{label} {i}", label) for label, count in counts.items() for i in range(count)]
    return [label for _, label in sorted(pairs, key=lambda pair: pair[0][::-1])]  # mixed


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(5, 40), min_size=2),
    st.sampled_from([0.2, 0.3]),
    st.integers(0, 3),
    st.sampled_from([("dev",), ("test",), ("test", "dev")]),
)
def test_every_label_keeps_its_share_in_each_part(counts, share, seed, splits):
    labels = labels_of(counts)
    found = stratified_splits(labels, dict.fromkeys(splits, share), seed, SOURCE)
    alone = stratified_splits(labels, {splits[0]: share}, seed, SOURCE)
    assert [split == splits[0] for split in found] == [split == splits[0] for split in alone]
    assert set(found) == {"train", *splits}
    for split in splits:
        held = Counter(label for label, own in zip(labels, found, strict=True) if own == split)
        assert held.total() == round(share * len(labels))
        for label, count in counts.items():
            # of two parts, the second keeps the shares of what the first left
            assert abs(held[label] - share * count) <= len(splits)


@pytest.mark.parametrize(
    ("counts", "share", "splits", "message"),
    [
        ({"a": 30, "b": 2}, 0.2, ("test", "dev"), "too few .*'b'"),
        ({"a": 4, "b": 4}, 0.9, ("dev",), "too few examples are left for train"),
    ],
)
def test_labels_that_cannot_be_in_every_split_are_refused(counts, share, splits, message):
    with pytest.raises(UserError, match=message):
        stratified_splits(labels_of(counts), dict.fromkeys(splits, share), 0, SOURCE)


def test_a_label_with_too_few_examples_is_in_train_alone():
    labels = labels_of({"a": 60, "b": 60, "c": 2, "d": 1})
    found = stratified_splits(labels, {"test": 0.3, "dev": 0.5}, 0, SOURCE)
    assert (found.count("test"), found.count("dev")) == (37, 62)
    assert {own for own, label in zip(found, labels, strict=True) if label in "cd"} == {"train"}


@pytest.mark.parametrize("seed", range(5))
def test_one_example_more_than_there_are_parts_puts_a_label_in_every_split(seed):
    labels = labels_of({"a": 60, "b": 60, "c": 3})
    found = stratified_splits(labels, {"test": 0.3, "dev": 0.5}, seed, SOURCE)
    assert (found.count("test"), found.count("dev")) == (37, 62)
    rare = [split for split, label in zip(found, labels, strict=True) if label == "c"]
    assert sorted(rare) == ["dev", "test", "train"]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(3, 9), min_size=2),
    st.sampled_from([(1, 1), (1, 2), (1, 0)]),
    st.randoms(use_true_random=False),
    st.integers(0, 2),
)
def test_each_part_has_enough_of_every_label(counts, least, random, seed):
    labels = [label for label, count in counts.items() for _ in range(count)]
    order = random.sample(range(len(labels)), len(labels))
    cut = random.randint(least[0] * len(counts), len(labels) - least[1] * len(counts))
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


def test_which_rows_went_where_is_told(tmp_path):
    examples = [(f"{label} {i}", label) for i, label in enumerate(labels_of({"a": 20, "b": 10}))]
    train = write(tmp_path / "train.jsonl", examples)
    task = FileTask("own", "macro_f1", 16, train=str(train)).load()
    assert [len(split) for split in (task.train, task.dev, task.test)] == [18, 6, 6]
    lines = train.read_text().splitlines()
    for split, example in task.rows:
        assert example.text in getattr(task, split).texts
        assert f'"{example.text}"' in lines[example.number - 1]
    other = FileTask("own", "macro_f1", 16, train=str(train), split_seed=1).load()
    assert task.fingerprints["train"] == other.fingerprints["train"]
    assert task.fingerprints["dev"] != other.fingerprints["dev"]
    without = FileTask("own", "macro_f1", 16, train=str(train), test_share=0).load()
    assert [len(split) for split in (without.train, without.dev, without.test)] == [24, 6, 0]


@pytest.mark.parametrize(
    ("counts", "count"), [({"a": 900, "b": 90, "c": 10}, 50), ({"a": 60, "b": 2, "c": 2}, 3)]
)
def test_so_many_keep_their_labels_and_every_label_its_share(counts, count):
    labels = labels_of(counts)
    for seed in range(10):
        chosen = choose_labelled(labels, count, seed, SOURCE)
        assert sum(chosen) == count
        kept = Counter(label for label, is_kept in zip(labels, chosen, strict=True) if is_kept)
        for label, number in counts.items():
            assert kept[label] >= 1
            assert abs(kept[label] - count * number / len(labels)) <= 2
    with pytest.raises(UserError, match=r"task.labelled=1: "):
        choose_labelled(labels, 1, 0, SOURCE)


def test_texts_without_their_labels_stay_as_text_of_the_task(tmp_path):
    train = [(f"text {i}", "ab"[i % 3 == 0]) for i in range(30)]
    dev, test = [("text 1", "a"), ("new", "b")], [("other", "a"), ("text 2", "b")]
    files = task_of(tmp_path, train, dev, test)
    whole = files.load()
    few = type(files)(**{**vars(files), "labelled": 9, "split_seed": 4}).load()
    assert len(few.train) == 9
    assert few.labels == whole.labels
    assert sorted(training_texts(few).texts["text"]) == sorted(text for text, _ in train)
    # the model reads those texts too: what is unseen is in none of them
    assert few.dev.unseen == whole.dev.unseen == [False, True]
    assert few.test.unseen == whole.test.unseen == [True, False]
    assert few.fingerprints["test"] == whole.fingerprints["test"]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab")), min_size=60, max_size=90),
    st.integers(0, 3),
)
def test_no_group_is_in_two_clean_splits_and_labels_keep_their_shares(examples, seed):
    groups, labels = zip(*examples, strict=True)
    sizes = {"train": len(groups) - 24, "dev": 12, "test": 12}
    try:
        found = clean_split(groups, labels, sizes, seed, "toy")
    except UserError:
        assume(False)
    assert found == clean_split(groups, labels, sizes, seed, "toy")
    members = defaultdict(set)
    for group, split in zip(groups, found, strict=True):
        members[group].add(split)
    assert all(len(splits) == 1 for splits in members.values())
    for split in ("dev", "test"):
        held = Counter(label for label, own in zip(labels, found, strict=True) if own == split)
        for label, count in Counter(labels).items():
            assert held[label] <= count * sizes[split] / len(groups) + 1


def test_many_labels_leave_the_splits_their_sizes():
    names, sizes = [f"label {i % 40}" for i in range(160)], {"train": 128, "dev": 16, "test": 16}
    assert Counter(clean_split(range(160), names, sizes, 0, "toy")) == sizes  # 0.4 a label


def test_impossible_clean_splits_are_refused():
    groups, sizes = [i // 20 for i in range(100)], {"train": 80, "dev": 10, "test": 10}
    with pytest.raises(UserError, match="task toy cannot be split anew"):
        clean_split(groups, "ab" * 50, sizes, 0, "toy")


@pytest.mark.parametrize("test_share", [0.2, 0.0])
def test_one_table_is_split_such_that_no_text_is_in_two_splits(tmp_path, test_share):
    texts = [f"word{i // 2} is {'HERE.' if i % 2 else 'here'}" for i in range(80)]  # in pairs
    path = write(tmp_path / "a.jsonl", [(t, "ab"[i // 2 % 2]) for i, t in enumerate(texts)])
    shares = {"test_share": test_share, "dev_share": 0.25}
    task = FileTask("toy", "macro_f1", 16, train=str(path), split="clean", **shares).load()
    sizes = {split: len(getattr(task, split)) for split in ("train", "dev", "test")}
    held = round(80 * test_share)
    assert sizes == {"train": 60 - held, "dev": 20, "test": held}
    splits = [split for split, _ in task.rows]
    assert splits[::2] == splits[1::2]  # a text and its copy
    assert [one.text for _, one in task.rows] == texts
    assert all(task.dev.unseen)
    with pytest.raises(UserError, match="split=clean splits one table"):
        FileTask("toy", "macro_f1", 16, train=str(path), test=str(path), split="clean").load()


def test_the_clean_splits_of_a_task_of_the_paper_stay_what_they_are(real_data, cache_dir):
    options = [f"data_dir={real_data}", f"cache_dir={cache_dir}"]
    node = config_of(["task=acl_arc", "task.split=clean", *options]).task
    settings = {name: value for name, value in node.items() if not name.startswith("_")}
    task = PaperTask(**{**settings, "domain": ()}).load()
    assert [len(split) for split in (task.train, task.dev, task.test)] == [1689, 114, 138]
    digest = hashlib.sha256("\n".join(task.test.texts).encode()).hexdigest()
    assert digest == "b45be3bf098a01bfab5c21c56fdd6dc4036cfc29e4ea4b554adbd1fc2c7cfed6"
