"""Predictions of a module by a Trainer."""

from __future__ import annotations

import pytest
from torch.utils.data import DataLoader

from tartan.methods import FineTuning
from tests.methods.lightning import toy_data, trainer

TEXTS = ["red apple", "an old and cold river", "stone"]


@pytest.fixture(scope="module")
def module(data_dir, cache_dir):
    return FineTuning.for_data(toy_data(data_dir, cache_dir), lr=1e-3)


def test_a_loader_of_texts_gives_their_labels(module, tmp_path):
    loader = DataLoader(TEXTS, batch_size=2, collate_fn=list)
    found = trainer(tmp_path).predict(module, loader)
    assert [len(batch["label"]) for batch in found] == [2, 1]
