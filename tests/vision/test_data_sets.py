"""scikit-learn's digits, and CIFAR-100 from a local copy in the Hub's layout."""

from __future__ import annotations

import datasets
import numpy as np
import pytest
from huggingface_hub import constants
from PIL import Image
from sklearn.datasets import load_digits

from tartan.errors import UserError
from tartan.settings import build
from tests.in_process import config_of
from tests.local_server import closed_address

MAMMALS = ("fox", "porcupine", "possum", "raccoon", "skunk")
NAMES = sorted([*MAMMALS, *(f"thing {n:02}" for n in range(95))])
PER_CLASS = {"train": 6, "test": 2}


def test_no_shade_of_a_digit_is_lost():
    source = build(config_of(["task=digits"]).task, "task")
    scans, test, names = source.read()
    digits = load_digits()
    assert (test, names) == (None, [str(digit) for digit in range(10)])
    assert (scans.images.shape, scans.images.dtype) == ((1797, 1, 8, 8), np.uint8)
    np.testing.assert_array_equal(np.rint(scans.images[:, 0] * (16 / 255)), digits.images)
    np.testing.assert_array_equal(scans.labels, digits.target)
    task = source.load()
    assert task.labels == ("3", "5", "8", "9", "1")
    sizes = [np.bincount(getattr(task, s).labels).tolist() for s in ("train", "dev", "test")]
    counts = np.bincount(digits.target)
    assert sizes == [[5] * 5, [20] * 5, [counts[n] - 25 for n in (3, 5, 8, 9, 1)]]


def made_up_split(split):
    """Random images, a few of every class, in a random order: `(images, labels)`."""
    rng = np.random.default_rng(len(split))
    labels = rng.permutation(np.repeat(np.arange(100), PER_CLASS[split]))
    return rng.integers(0, 256, (len(labels), 32, 32, 3), dtype=np.uint8), labels


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A data folder that holds a copy of CIFAR-100."""
    folder = tmp_path_factory.mktemp("copy")
    (folder / "cifar100").mkdir()
    label = datasets.ClassLabel(names=NAMES)
    features = datasets.Features({"img": datasets.Image(), "fine_label": label})
    for split in PER_CLASS:
        images, labels = made_up_split(split)
        columns = {"img": [Image.fromarray(i) for i in images], "fine_label": labels.tolist()}
        rows = datasets.Dataset.from_dict(columns, features=features)
        rows.to_parquet(str(folder / "cifar100" / f"{split}-00000-of-00001.parquet"))
    return folder


def source_in(data_dir, cache_dir, **options):
    config = config_of(["task=cifar100", f"cache_dir={cache_dir}"])
    data_dir = None if data_dir is None else str(data_dir)
    return build(config.task, "task", data_dir=data_dir, **options)


def test_images_and_labels_come_back_as_they_were(copy, cache_dir):
    source = source_in(copy, cache_dir, train_per_class=3, dev_per_class=2)
    train, test, names = source.read()
    assert names == NAMES
    for split, read in (("train", train), ("test", test)):
        images, labels = made_up_split(split)
        assert read.images.dtype == np.uint8
        np.testing.assert_array_equal(read.images, images.transpose(0, 3, 1, 2))
        np.testing.assert_array_equal(read.labels, labels)
    task = source.load()
    assert task.labels == MAMMALS
    wanted = np.isin(labels, [NAMES.index(name) for name in MAMMALS])
    np.testing.assert_array_equal(task.test.images, images[wanted].transpose(0, 3, 1, 2))
    assert [NAMES[label] for label in labels[wanted]] == [MAMMALS[n] for n in task.test.labels]
    assert (len(task.other_labels), len(task.others)) == (95, 95 * 6)


def test_what_cannot_be_read_is_an_error_that_names_the_folder(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="cifar100 does not exist"):
        source_in(tmp_path, tmp_path).load()
    monkeypatch.setattr(constants, "ENDPOINT", closed_address())
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"task\.hub=uoft-cs/cifar100"):
        source_in(None, tmp_path).load()
