"""Batches of a user's own loader, as an evaluation reads them."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from tartan.data.batches import labelled_batch, unlabelled_batch
from tartan.data.task_kind import TaskKind
from tartan.errors import UserError


def places(names, **given):
    _, found, unseen = labelled_batch({"text": ["a", "b"], **given}, names, TaskKind())
    assert unseen is None
    return found.tolist()


def test_labels_are_those_of_the_training_data():
    assert places(("no", "yes"), label=["yes", "no"]) == [1, 0]
    assert places(("false", "true"), label=torch.tensor([True, False])) == [1, 0]


def test_labels_that_are_numbers_are_not_places():
    """Of a data set whose labels are 1, 2, 10 the loader gives these, in a tensor."""
    assert places(("1", "2", "10"), label=torch.tensor([10, 1])) == [2, 0]


def test_a_tokenizers_tensors_are_taken_where_they_are_padded_on_the_right():
    batch = {"input_ids": torch.ones(2, 3, dtype=torch.int64)}
    assert unlabelled_batch(batch) is batch
    left = {**batch, "attention_mask": torch.tensor([[1, 1, 1], [0, 1, 1]])}
    with pytest.raises(UserError, match=r'padded on the left.* use padding_side="right"'):
        unlabelled_batch(left)


@pytest.mark.parametrize("batch", [{"text": ["a"]}, ["a"], {"sentence": ["a"], "label": [1]}])
def test_anything_else_is_refused(batch):
    with pytest.raises(UserError, match="a batch must be"):
        labelled_batch(batch, ("no", "yes"), TaskKind())


def loaded(rows, **options):
    return [unlabelled_batch(batch) for batch in DataLoader(rows, **options)]


def test_rows_that_pytorch_transposes_are_refused():
    pairs = [(f"text {i}", f"label {i}") for i in range(6)]
    for options in ({"batch_size": 2}, {"batch_size": 2, "collate_fn": list}):
        with pytest.raises(UserError, match="something else than texts"):
            loaded(pairs, **options)


def test_rows_with_names_are_read_however_a_loader_puts_them_together():
    rows = [{"text": f"a {i}", "text_pair": f"b {i}"} for i in range(3)]
    expected = [[("a 0", "b 0"), ("a 1", "b 1")], [("a 2", "b 2")]]
    assert loaded(rows, batch_size=2) == loaded(rows, batch_size=2, collate_fn=list) == expected
    assert loaded(rows, batch_size=None) == [[(f"a {i}", f"b {i}")] for i in range(3)]
    assert loaded(["a", "b"], batch_size=None) == [["a"], ["b"]]
