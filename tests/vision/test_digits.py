"""scikit-learn's digits as images of one channel."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tartan.settings import build
from tartan.vision.task import DigitsTask
from tests.in_process import config_of


@pytest.fixture(scope="module")
def source() -> DigitsTask:
    return build(config_of(["task=digits"]).task, "task")


@pytest.fixture(scope="module")
def task(source):
    return source.load()


def test_the_scans_are_scaled_to_bytes(source):
    scans, test, names = source.read()
    assert test is None
    assert names == [str(digit) for digit in range(10)]
    assert (scans.images.shape, scans.images.dtype) == ((1797, 1, 8, 8), np.uint8)
    assert (scans.images.min(), scans.images.max()) == (0, 255)
    assert (scans.labels.shape, scans.labels.dtype) == ((1797,), np.int64)


def test_no_shade_is_lost(source):
    scans, _, _ = source.read()
    digits = load_digits()
    np.testing.assert_array_equal(np.rint(scans.images[:, 0] * (16 / 255)), digits.images)
    np.testing.assert_array_equal(scans.labels, digits.target)


def test_the_end_task_is_five_images_of_each_of_five_digits(task):
    assert task.labels == ("3", "5", "8", "9", "1")
    assert np.bincount(task.train.labels).tolist() == [5] * 5
    assert np.bincount(task.dev.labels).tolist() == [20] * 5
    counts = np.bincount(load_digits().target)
    assert np.bincount(task.test.labels).tolist() == [counts[n] - 25 for n in (3, 5, 8, 9, 1)]
