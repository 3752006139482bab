"""Losses of labelled examples."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tartan.objectives.supervised import Supervised


def test_every_example_has_its_own_cross_entropy():
    torch.manual_seed(0)
    head, features, labels = nn.Linear(4, 3), torch.randn(5, 4), torch.tensor([0, 2, 1, 1, 0])
    losses = Supervised().losses(nn.Identity(), head, features, labels)
    for index in range(5):
        expected = F.cross_entropy(head(features[index : index + 1]), labels[index : index + 1])
        torch.testing.assert_close(losses[index], expected)


def test_every_unit_is_its_own_example():
    inputs = {"labels": torch.tensor([2, 0, 1])}
    assert Supervised().owners(inputs).tolist() == [0, 1, 2]
    assert Supervised().targets(inputs).tolist() == [2, 0, 1]
