"""Batch normalisation inside and after the passes that leave no trace."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from tartan.core.running_statistics import frozen_running_statistics
from tests.conftest import DEVICE

KINDS = {
    "1d": (nn.BatchNorm1d, (6, 4)),
    "2d": (nn.BatchNorm2d, (6, 4, 3, 3)),
    "3d": (nn.BatchNorm3d, (6, 4, 2, 2, 2)),
}


def inputs(shape=(6, 4), seed=0):
    return 3 + 2 * torch.randn(shape, generator=torch.Generator(DEVICE).manual_seed(seed))


def statistics(module):
    return {name: value.clone() for name, value in module.named_buffers()}


def unchanged(module, before):
    now = dict(module.named_buffers())
    return now.keys() == before.keys() and all(now[n].equal(before[n]) for n in now)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_pass_inside_normalises_by_its_batch_and_records_nothing(kind, momentum):
    norm, shape = KINDS[kind][0](4, momentum=momentum), KINDS[kind][1]
    norm(inputs(shape, seed=1))
    before, x = statistics(norm), inputs(shape)
    with frozen_running_statistics(norm):
        found = norm(x)
    dims = [0, *range(2, len(shape))]
    variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    torch.testing.assert_close(found, (x - mean) / (variance + norm.eps).sqrt())
    assert unchanged(norm, before)


def test_a_pass_inside_has_the_gradients_of_training():
    held, plain = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    with frozen_running_statistics(held):
        held(inputs()).square().sum().backward()
    plain(inputs()).square().sum().backward()
    assert torch.equal(held.weight.grad, plain.weight.grad)
    assert torch.equal(held.bias.grad, plain.bias.grad)


def test_every_norm_of_a_body_is_held():
    body = nn.Sequential(
        nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Sequential(nn.ReLU(), nn.BatchNorm1d(4))
    )
    before = statistics(body)
    with frozen_running_statistics(body):
        body(inputs())
    assert unchanged(body, before)


def test_afterwards_it_records_again_as_if_nothing_had_been():
    norm = nn.BatchNorm1d(4)
    undisturbed = copy.deepcopy(norm)
    with frozen_running_statistics(norm):
        norm(inputs(seed=1))
    norm(inputs(seed=2))
    undisturbed(inputs(seed=2))
    assert unchanged(norm, statistics(undisturbed))
    assert norm.num_batches_tracked == 1


def test_it_records_again_after_an_exception():
    norm = nn.BatchNorm1d(4)
    with pytest.raises(RuntimeError, match="on the way"), frozen_running_statistics(norm):
        raise RuntimeError("on the way")
    assert norm.track_running_stats
    before = statistics(norm)
    norm(inputs())
    assert not unchanged(norm, before)


def test_a_norm_that_did_not_record_does_not_begin_to():
    body = nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.BatchNorm1d(4))
    with frozen_running_statistics(body):
        body(inputs())
    assert [norm.track_running_stats for norm in body] == [False, True]
    assert body[0].running_mean is None
    body[0](inputs())
    assert body[0].running_mean is None


def test_one_within_another_holds_until_the_outer_one_ends():
    norm = nn.BatchNorm1d(4)
    before = statistics(norm)
    with frozen_running_statistics(norm):
        with frozen_running_statistics(norm):
            norm(inputs())
        norm(inputs())
        assert unchanged(norm, before)
    norm(inputs())
    assert not unchanged(norm, before)


def test_a_norm_in_evaluation_still_uses_what_was_recorded():
    norm = nn.BatchNorm1d(4)
    norm(inputs(seed=1))
    norm.eval()
    expected = norm(inputs())
    with frozen_running_statistics(norm):
        assert torch.equal(norm(inputs()), expected)


def test_a_body_without_batch_norm_is_left_alone():
    body = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    with frozen_running_statistics(body):
        inside = body(inputs())
    assert torch.equal(inside, body(inputs()))
