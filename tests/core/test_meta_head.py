"""The meta head: fresh or warm, fitted on cached features with the body held fixed."""

from __future__ import annotations

import torch
from torch import nn

from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.encoders.heads import ClassifierHead
from tartan.objectives.classification import Classification
from tests.conftest import DEVICE


def separable(count=64, classes=3, hidden=8):
    generator = torch.Generator(DEVICE).manual_seed(0)
    targets = torch.randint(classes, (count,), generator=generator)
    features = torch.randn(count, hidden, generator=generator)
    features[torch.arange(count), targets] += 4
    return features, targets


def fit(settings, times=1, seed=0):
    torch.manual_seed(5)
    end_head = ClassifierHead(8, 3, dropout=0.0)
    meta_head = MetaHead(end_head, settings)
    features, targets = separable()
    torch.manual_seed(seed)
    losses = [
        float(meta_head.fit(nn.Identity(), Classification(3), features, targets))
        for _ in range(times)
    ]
    return meta_head, end_head, losses


def test_fitting_lowers_the_loss_below_chance():
    _, _, (loss,) = fit(MetaHeadSettings(steps=60, lr=1e-2, examples=64))
    assert loss < 0.3


def test_a_fresh_head_starts_anew_and_a_warm_one_goes_on():
    _, _, fresh = fit(MetaHeadSettings(steps=10, fresh=True, examples=64, lr=1e-2), times=4)
    _, _, warm = fit(MetaHeadSettings(steps=10, fresh=False, examples=64, lr=1e-2), times=4)
    assert min(fresh) > 0.5 * max(fresh)
    assert warm[3] < 0.5 * warm[0]


def test_autocast_does_not_freeze_the_weights_after_the_first_step():
    """Autocast caches 16-bit copies of weights: a fit inside its context must not use them."""
    torch.manual_seed(5)
    end_head = ClassifierHead(8, 3, dropout=0.0).requires_grad_(False)  # frozen, not the meta head
    meta_head = MetaHead(end_head, MetaHeadSettings(steps=60, lr=1e-2, examples=64))
    features, targets = separable()
    with torch.autocast("cpu", torch.bfloat16):
        meta_head.head(features)  # fills the cache
        loss = meta_head.fit(nn.Identity(), Classification(3), features, targets)
    assert float(loss) < 0.3


def test_convergence_ends_the_fit_early(monkeypatch):
    every, _, (loss,) = fit(MetaHeadSettings(steps=400, lr=1e-2, examples=64))
    settings = MetaHeadSettings(steps=400, lr=1e-2, examples=64, tolerance=0.02)
    stopped, _, (early,) = fit(settings)
    assert loss < early < 0.5
    assert not torch.equal(every.head.out.weight, stopped.head.out.weight)
    # as on a GPU, where reading the flag would be to wait: all steps run, some without effect
    monkeypatch.setattr("tartan.core.meta_head.is_cpu", lambda device: False)
    masked, _, (loss,) = fit(settings)
    assert loss == early
    for name, value in stopped.head.state_dict().items():
        assert torch.equal(masked.head.state_dict()[name], value), name
