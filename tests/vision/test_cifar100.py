"""CIFAR-100 from a local copy in the Hub's layout, and what is said where there is none."""

from __future__ import annotations

import time

import datasets
import numpy as np
import pytest
from huggingface_hub import constants
from PIL import Image

from tartan.errors import UserError
from tartan.settings import build
from tartan.vision.cifar100 import Cifar100Task
from tests.in_process import config_of, recorded_run
from tests.local_server import closed_address

pytestmark = pytest.mark.slow

MAMMALS = ("fox", "porcupine", "possum", "raccoon", "skunk")
NAMES = sorted([*MAMMALS, *(f"thing {n:02}" for n in range(95))])
PER_CLASS = {"train": 6, "test": 2}


def made_up_split(split):
    """Random images, a few of every class, in a random order: `(images, labels)`."""
    rng = np.random.default_rng(len(split))
    labels = rng.permutation(np.repeat(np.arange(100), PER_CLASS[split]))
    return rng.integers(0, 256, (len(labels), 32, 32, 3), dtype=np.uint8), labels


def write(path, images, labels, fine="fine_label", kind=None):
    columns = {
        "img": [Image.fromarray(image) for image in images],
        fine: labels.tolist(),
        "coarse_label": [0] * len(labels),
    }
    features = {
        "img": datasets.Image(),
        fine: datasets.ClassLabel(names=NAMES) if kind is None else kind,
        "coarse_label": datasets.ClassLabel(names=["anything"]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
    rows.to_parquet(str(path))


def write_both(folder, count=None, **options):
    for split in PER_CLASS:
        images, labels = made_up_split(split)
        path = folder / f"{split}-00000-of-00001.parquet"
        write(path, images[:count], labels[:count], **options)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A data folder that holds a copy."""
    folder = tmp_path_factory.mktemp("copy")
    write_both(folder / "cifar100")
    return folder


def source_in(data_dir, cache_dir, **options) -> Cifar100Task:
    config = config_of(["task=cifar100", f"cache_dir={cache_dir}"])
    return build(
        config.task, "task", data_dir=None if data_dir is None else str(data_dir), **options
    )


def error_of(source) -> str:
    with pytest.raises(UserError) as caught:
        source.load()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def test_images_and_labels_come_back_as_they_were(copy, cache_dir):
    train, test, names = source_in(copy, cache_dir).read()
    assert names == NAMES
    for split, found in (("train", train), ("test", test)):
        images, labels = made_up_split(split)
        assert found.images.dtype == np.uint8
        np.testing.assert_array_equal(found.images, images.transpose(0, 3, 1, 2))
        np.testing.assert_array_equal(found.labels, labels)


def test_the_end_task_is_the_mammals_tested_on_the_test_split(copy, cache_dir):
    task = source_in(copy, cache_dir, train_per_class=3, dev_per_class=2).load()
    assert task.labels == MAMMALS
    assert np.bincount(task.train.labels).tolist() == [3] * 5
    assert np.bincount(task.dev.labels).tolist() == [2] * 5
    images, labels = made_up_split("test")
    wanted = np.isin(labels, [NAMES.index(name) for name in MAMMALS])
    np.testing.assert_array_equal(task.test.images, images[wanted].transpose(0, 3, 1, 2))
    assert [NAMES[label] for label in labels[wanted]] == [MAMMALS[n] for n in task.test.labels]
    assert len(task.other_labels) == 95
    assert len(task.others) == 95 * 6


@pytest.mark.parametrize("split", PER_CLASS)
def test_a_file_that_is_no_parquet_is_an_error(split, tmp_path, cache_dir):
    write_both(tmp_path / "cifar100", count=5)
    path = tmp_path / "cifar100" / f"{split}-00000-of-00001.parquet"
    path.write_bytes(b"nonsense")
    assert str(tmp_path / "cifar100") in error_of(source_in(tmp_path, cache_dir))


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Point the Hub's clients at an address; its cache is empty."""

    def call(address, offline=False):
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", offline)
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", address)

    return call


@pytest.mark.parametrize("offline", [False, True])
def test_without_a_connection_it_fails_within_seconds_and_names_the_folder_to_use(
    offline, hub, tmp_path
):
    hub(closed_address(), offline)
    started = time.monotonic()
    message = error_of(source_in(None, tmp_path / "cache"))
    assert time.monotonic() - started < 10
    assert "uoft-cs/cifar100" in message
    assert "data_dir=FOLDER" in message


def test_an_experiment_of_the_paper_runs_on_a_copy(copy, cache_dir, tmp_path):
    run = recorded_run(
        [
            "+experiment=cifar100_meta",
            f"data_dir={copy}",
            f"cache_dir={cache_dir}",
            "task.train_per_class=3",
            "task.dev_per_class=2",
            "encoder.depth=10",
            "encoder.width=1",
            "method.stages.joint.batch_size=4",
            "max_steps=2",
            "trainer.enable_progress_bar=false",
            "trainer.precision=32-true",
        ],
        tmp_path,
    )
    assert run.events == ["joint", "test"]
    assert run.result["labels"] == list(MAMMALS)
    assert run.result["train"]["examples"] == 15
    assert run.result["test"]["whole"]["examples"] == 10
    assert run.result["auxiliaries"]["other_classes"]["examples"] == 95 * 6
    assert run.result["metric"] == "micro_f1"
    last = run.modules["joint"].last_record
    assert last.losses.isfinite().all()


def test_a_split_or_a_column_that_is_missing_is_an_error(copy, cache_dir, tmp_path):
    assert "train*.parquet" in error_of(source_in(tmp_path, cache_dir))
    assert "'other'" in error_of(source_in(copy, cache_dir, image_column="other"))
    assert "'coarse'" in error_of(source_in(copy, cache_dir, label_column="coarse"))
    assert "coarse_label" in error_of(source_in(copy, cache_dir, image_column="coarse_label"))
