"""Pooled rows are those of the parts, one after the other."""

from __future__ import annotations

import datasets
import pytest

from src.data.pooled import PooledRows, pooled


def part(*ids):
    return datasets.Dataset.from_dict({"input_ids": [[number] for number in ids]})


@pytest.mark.parametrize("indices", [[0], [5], [4, 0, 3, 3, 1], [5, 4, 3, 2, 1, 0]])
def test_any_rows_can_be_had_in_any_order(indices):
    rows = PooledRows([part(10, 11), part(20), part(30, 31, 32)])
    whole = [[10], [11], [20], [30], [31], [32]]
    assert len(rows) == 6
    assert rows[indices] == {"input_ids": [whole[index] for index in indices]}


def test_a_part_that_is_made_when_read_stays_so():
    texts = datasets.Dataset.from_dict({"text": ["a", "bc"]}).with_transform(
        lambda columns: {"input_ids": [[len(text)] for text in columns["text"]]}
    )
    assert PooledRows([part(7), texts])[[2, 0, 1]] == {"input_ids": [[2], [7], [1]]}


def test_one_part_is_its_own_pool():
    only = part(1, 2)
    assert pooled([only]) is only
