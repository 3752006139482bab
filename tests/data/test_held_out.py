"""Dev examples split off the training ones: every label keeps its share, nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.data.file_task import FileTask
from src.data.held_out import HeldOut
from src.data.text_task import load_text_task
from src.errors import UserError
from tests.data.test_text_task import write

PATH = Path("train.jsonl")


def examples_of(counts):
    pairs = [(f"{label} {i}", label) for label, count in counts.items() for i in range(count)]
    return sorted(pairs, key=lambda pair: pair[0][::-1])  # labels mixed


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(5, 40), min_size=2),
    st.sampled_from([0.2, 0.3, 0.5]),
    st.integers(0, 3),
)
def test_every_label_keeps_its_share_and_nothing_is_lost(counts, share, seed):
    examples = examples_of(counts)
    train, dev = HeldOut(share, seed).split(examples, PATH)
    assert sorted(train + dev) == sorted(examples)
    assert len(dev) == round(share * len(examples))
    held = Counter(label for _, label in dev)
    for label, count in counts.items():
        assert abs(held[label] - share * count) <= 1
    assert train == [pair for pair in examples if pair in set(train)]  # the file's order


def test_the_seed_decides_and_nothing_else():
    examples = examples_of({"a": 30, "b": 20})
    splits = [HeldOut(0.2, seed).split(examples, PATH) for seed in (0, 0, 1)]
    assert splits[0] == splits[1]
    assert splits[0] != splits[2]


def test_a_label_with_one_example_cannot_be_split():
    with pytest.raises(UserError, match="label 'b' has one example only"):
        HeldOut(0.2, 0).split(examples_of({"a": 30, "b": 1}), PATH)


def test_a_task_without_a_dev_file_has_one_of_its_training_examples(tmp_path):
    train = write(tmp_path / "train.jsonl", examples_of({"a": 20, "b": 10}))
    test = write(tmp_path / "test.jsonl", [("new", "a")])
    own = {"name": "own", "metric": "macro_f1", "max_length": 16}
    task = load_text_task(FileTask(train=str(train), test=str(test), **own))
    assert (len(task.train), len(task.dev), len(task.test)) == (24, 6, 1)
    assert all(task.dev.unseen)
    other = load_text_task(FileTask(train=str(train), test=str(test), split_seed=1, **own))
    assert task.fingerprints["train"] == other.fingerprints["train"]
    assert task.fingerprints["dev"] != other.fingerprints["dev"]
