"""Few labels: which examples keep theirs, and that the others stay as text."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.data.label_budget import choose_labelled
from src.data.text_auxiliary import training_texts
from src.errors import UserError
from tests.data.test_held_out import labels_of
from tests.data.test_text_task import task_of

SOURCE = "train.jsonl"
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
