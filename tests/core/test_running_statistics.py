"""Batch normalisation inside and after the passes that leave no trace."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tartan.core.body import frozen_running_statistics
from tests.conftest import DEVICE


def inputs(seed=0):
    return 3 + 2 * torch.randn((6, 4), generator=torch.Generator(DEVICE).manual_seed(seed))


def statistics(module):
    return [value.clone() for _, value in module.named_buffers()]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_pass_inside_normalises_by_its_batch_and_records_nothing(momentum):
    body = nn.Sequential(nn.Identity(), nn.Sequential(nn.BatchNorm1d(4, momentum=momentum)))
    body(inputs(seed=1))
    before, x = statistics(body), inputs()
    with frozen_running_statistics(body), frozen_running_statistics(body):
        found = body(x)
    variance, mean = torch.var_mean(x, 0, correction=0)
    torch.testing.assert_close(found, (x - mean) / (variance + 1e-5).sqrt())
    assert all(map(torch.equal, statistics(body), before))
