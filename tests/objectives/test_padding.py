"""Padding of texts on the right."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tartan.objectives.padding import pad, padded_width


@pytest.mark.parametrize(
    ("length", "most", "width"), [(5, None, 8), (8, 512, 8), (9, 12, 12), (13, 12, 13)]
)
def test_the_width_is_a_multiple_of_8_unless_the_body_has_too_few_positions(length, most, width):
    assert padded_width([np.zeros(3), np.zeros(length)], most) == width


@pytest.mark.parametrize("pad_id", [0, 1])
def test_examples_are_padded_on_the_right_to_the_longest_of_them(pad_id):
    padded = pad([np.array([7, 8, 9]), np.array([5])], pad_id)
    assert padded["input_ids"].tolist() == [[7, 8, 9], [5, pad_id, pad_id]]
    assert padded["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert padded["input_ids"].dtype == padded["attention_mask"].dtype == torch.int64


def test_a_token_that_equals_the_padding_token_is_attended_to():
    assert pad([np.array([0, 0]), np.array([3])], 0)["attention_mask"].tolist() == [[1, 1], [1, 0]]
