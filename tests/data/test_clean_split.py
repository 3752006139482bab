"""New splits that share no text, near-duplicates included."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tartan.data.clean_split import clean_split, same_texts
from tartan.data.file_task import FileTask
from tartan.data.near_duplicates import MIN_SIMILARITY, WORDS
from tartan.data.paper_tasks import PaperTask
from tartan.data.tartan_data import TartanData
from tartan.errors import UserError
from tests.conftest import REAL_DATA
from tests.data.test_text_task import task_of
from tests.in_process import config_of

SIZES = {"train": 60, "dev": 20, "test": 20}


def are_alike(left, right):
    """Whether two texts are near-duplicates, by sets of word sequences."""
    grams = []
    for text in (left, right):
        words = text.split()
        grams.append({tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)})
    either = grams[0] | grams[1]
    return bool(either) and len(grams[0] & grams[1]) >= MIN_SIMILARITY * len(either)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=7), min_size=1, max_size=8))
def test_groups_are_the_components_of_equal_and_alike_texts(words):
    texts = [" ".join(own) for own in words]
    groups = same_texts(texts)
    # by hand: spread the smallest number along the links until nothing changes
    slow = list(range(len(texts)))
    for _ in texts:
        for i, left in enumerate(texts):
            for j, right in enumerate(texts):
                if left == right or are_alike(left, right):
                    slow[i] = slow[j] = min(slow[i], slow[j])
    assert [[a == b for b in groups] for a in groups] == [[a == b for b in slow] for a in slow]


def test_case_space_and_punctuation_do_not_tell_texts_apart():
    groups = same_texts(["A cat, sat.", "a  cat sat", "another cat", "A CAT SAT"])
    assert (groups == groups[0]).tolist() == [True, True, False, True]


@given(st.lists(st.integers(0, 39), min_size=100, max_size=100), st.integers(0, 5))
def test_no_group_is_split_and_labels_keep_their_shares(groups, seed):
    labels = ["ab"[number % 3 == 0] for number in range(100)]
    try:
        found = clean_split(groups, labels, SIZES, seed, "toy")
    except UserError:  # where a few groups hold all examples
        assume(max(Counter(groups).values()) < 10)
        raise
    sides = defaultdict(set)
    for group, split in zip(groups, found, strict=True):
        sides[group].add(split)
    assert all(len(side) == 1 for side in sides.values())
    counts = Counter(zip(found, labels, strict=True))
    for split in ("dev", "test"):
        for label, number in Counter(labels).items():
            assert counts[split, label] <= round(number * SIZES[split] / 100)


def test_single_texts_fill_dev_and_test_and_the_seed_draws_others():
    labels = ["ab"[number % 4 == 0] for number in range(100)]
    first, again, other = (
        clean_split(range(100), labels, SIZES, seed, "toy") for seed in (0, 0, 1)
    )
    assert Counter(first) == SIZES
    assert first == again != other


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("labels", "each", "sizes"),
    [
        (10, 6, {"train": 48, "dev": 6, "test": 6}),  # 0.6 examples a label
        (40, 4, {"train": 128, "dev": 16, "test": 16}),  # 0.4
        (3, 50, {"train": 110, "dev": 20, "test": 20}),  # 6.67
    ],
)
def test_many_labels_leave_the_splits_their_sizes(labels, each, sizes, seed):
    own = [f"label {index % labels}" for index in range(labels * each)]
    found = clean_split(range(len(own)), own, sizes, seed, "toy")
    assert Counter(found) == sizes
    for split, size in sizes.items():
        held = Counter(label for label, part in zip(own, found, strict=True) if part == split)
        assert all(abs(held[label] - size / labels) < 2 for label in own)


@given(st.lists(st.sampled_from("abcdefg"), min_size=30, max_size=60), st.integers(0, 3))
def test_dev_and_test_never_have_more_than_their_sizes(labels, seed):
    sizes = {"train": len(labels) - 15, "dev": 10, "test": 5}
    labels = [*labels, *set(labels)] * 2  # at least four of each
    found = Counter(clean_split(range(len(labels)), labels, sizes, seed, "toy"))
    assert 0 < found["dev"] <= 10
    assert 0 < found["test"] <= 5


@pytest.mark.parametrize(
    ("sizes", "split"),
    [
        ({"train": 80, "dev": 10, "test": 10}, "test"),  # groups of 20
        ({"train": 70, "dev": 10, "test": 20}, "dev"),
    ],
)
def test_a_split_that_would_be_empty_is_told(sizes, split):
    groups = [index // 20 for index in range(100)]
    with pytest.raises(UserError, match=f"task toy cannot be split anew: {split} would be empty"):
        clean_split(groups, "ab" * 50, sizes, 0, "toy")


def test_a_label_that_train_would_lack_is_told():
    labels = ["a"] * 10 + ["b"] * 2
    with pytest.raises(UserError, match=r"task toy cannot be split anew: .* no example of b;"):
        clean_split(range(12), labels, {"train": 2, "dev": 5, "test": 5}, 0, "toy")


def test_a_task_is_split_anew(tmp_path):
    train = [(f"word{i} is here", "ab"[i % 2]) for i in range(40)]
    dev = [(f"Word{i} is HERE.", "ab"[i % 2]) for i in range(10)]  # memory
    test = [(f"other{i} is there", "ab"[i % 2]) for i in range(10)]
    files = task_of(tmp_path, train, dev, test)
    task = type(files)(**{**vars(files), "split": "clean"}).load()
    assert len(task.train) + len(task.dev) + len(task.test) == 60
    assert all(task.dev.unseen)
    assert all(task.test.unseen)
    published = files.load()
    assert set(task.fingerprints.values()).isdisjoint(published.fingerprints.values())
    for kind, own in (("dev", dev), ("test", test)):  # whose label comes into train
        own += [(f"third{kind}{i} it was", "c") for i in range(8)]
    given = vars(task_of(tmp_path, train, dev, test))
    task = type(files)(**{**given, "split": "clean"}).load()
    assert task.labels == ("a", "b", "c")
    assert 2 in task.train.labels
    files = task_of(tmp_path, train, dev[:10], test[:10])
    task = type(files)(**{**vars(files), "split": "clean"}).load()
    other = type(files)(**{**vars(files), "split": "clean", "split_seed": 1}).load()
    assert other.digest() != task.digest()
    with pytest.raises(UserError, match=r"^split: "):
        type(files)(**{**vars(files), "split": "new"}).load()
    with pytest.raises(UserError, match=r"^task.split=clean .* name files for both dev and test"):
        type(files)(**{**vars(files), "split": "clean", "dev": None}).load()


@pytest.mark.parametrize("test_share", [0.2, 0.0])
def test_one_table_is_split_such_that_no_text_is_in_two_splits(tmp_path, test_share):
    texts = [f"word{i // 2} is {'HERE.' if i % 2 else 'here'}" for i in range(80)]  # in pairs
    path = tmp_path / "labels.jsonl"
    rows = ({"text": t, "label": "ab"[i // 2 % 2]} for i, t in enumerate(texts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shares = {"test_share": test_share, "dev_share": 0.25}
    task = FileTask("toy", "macro_f1", 16, train=str(path), split="clean", **shares).load()
    sizes = {split: len(getattr(task, split)) for split in ("train", "dev", "test")}
    held = round(80 * test_share)
    assert sizes == {"train": 60 - held, "dev": 20, "test": held}
    splits = [split for split, _ in task.assignment.rows]
    assert splits[::2] == splits[1::2]  # a text and its copy
    assert [one.text for _, one in task.assignment.rows] == texts
    assert all(task.dev.unseen)
    data = TartanData(path, split="clean", encoder="tiny", cache_dir=tmp_path, **shares)
    assert data.prepared.labelled.end_task.dev.texts == task.dev.texts


@pytest.mark.skipif(not REAL_DATA.is_dir(), reason="needs the paper's tasks in ../shared/data")
@pytest.mark.parametrize(
    ("name", "sizes"), [("acl_arc", (1688, 114, 139)), ("hyperpartisan", (516, 64, 65))]
)
def test_the_published_splits_that_leak_can_be_split_clean(name, sizes, cache_dir):
    options = [
        f"task={name}",
        "task.split=clean",
        f"data_dir={REAL_DATA}",
        f"cache_dir={cache_dir}",
    ]
    node = {k: v for k, v in config_of(options).task.items() if not k.startswith("_")}
    task = PaperTask(**{**node, "domain": ()}).load()
    splits = [task.train, task.dev, task.test]
    found = np.array([len(split) for split in splits])
    assert found.sum() <= sum(sizes)
    assert found[1] >= 0.8 * sizes[1]
    assert found[2] >= 0.8 * sizes[2]
    assert all(task.dev.unseen)
    assert all(task.test.unseen)
    assert set(task.test.labels) == set(task.train.labels)
    assert task.assignment is None
