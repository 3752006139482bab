"""Wide residual networks against the published ones, and how they are saved."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tartan.encoders.base import describe_encoder, encoder_from_description
from tartan.errors import UserError
from tartan.runs.prepare import enabled_stages, prepare
from tartan.vision.wide_resnet import (
    ImageEncoder,
    WideResNetSource,
)
from tests.in_process import config_of, toy


def load(channels=3, depth=10, width=1, **options) -> ImageEncoder:
    half = (0.5,) * channels
    return WideResNetSource(mean=half, std=half, depth=depth, width=width, **options).load()


def test_wrn_16_2_is_as_large_as_published():
    body = load(3, 16, 2).body
    # 703,284 with a layer for 100 classes, as the literature on distillation counts it
    assert sum(p.numel() for p in body.parameters()) == 703_284 - (128 * 100 + 100)


def reference(state, images, depth):
    """Compute pre-activated residual blocks in evaluation mode, from a state dict."""

    def activated(x, name):
        found = [
            state[f"{name}.{key}"] for key in ("running_mean", "running_var", "weight", "bias")
        ]
        mean, variance, weight, bias = (value.reshape(-1, 1, 1) for value in found)
        return ((x - mean) / (variance + 1e-5).sqrt() * weight + bias).clamp(min=0)

    x = F.conv2d(images, state["first.weight"], padding=1)
    per_group = (depth - 4) // 6
    for index in range(3 * per_group):
        name = f"blocks.{index}"
        stride = 2 if index in (per_group, 2 * per_group) else 1
        active = activated(x, f"{name}.norm1")
        hidden = F.conv2d(active, state[f"{name}.conv1.weight"], stride=stride, padding=1)
        hidden = activated(hidden, f"{name}.norm2")
        hidden = F.conv2d(hidden, state[f"{name}.conv2.weight"], padding=1)
        if f"{name}.shortcut.weight" in state:
            x = F.conv2d(active, state[f"{name}.shortcut.weight"], stride=stride)
        x = x + hidden
    return activated(x, "norm").mean(dim=(2, 3))


@pytest.mark.parametrize(("depth", "width"), [(10, 1), (16, 2)])
def test_features_are_those_of_the_published_network(depth, width):
    body = load(depth=depth, width=width).body
    generator = torch.Generator().manual_seed(0)
    for norm in (module for module in body.modules() if isinstance(module, nn.BatchNorm2d)):
        for value in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            value.data.uniform_(0.5, 1.5, generator=generator)
    images = torch.randn(4, 3, 12, 12, generator=generator)
    with torch.no_grad():
        found = body.eval()(images)
        expected = reference(body.state_dict(), images, depth)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


IMAGES = ["+experiment=shared/images", "task=digits", "method=finetune", "auxiliary=none"]


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        ("images", ["encoder=tiny"], "encoder of images"),
        ("images", ["classifier=text"], "encoder of text"),
        ("text", ["encoder=wide_resnet", "encoder.mean=[0.5]", "encoder.std=[0.5]"], "of text"),
        ("text", ["classifier=images"], "encoder of images"),
    ],
    ids=str,
)
def test_tasks_on_texts_refuse_encoders_of_images_and_the_reverse(
    kind, options, named, data_dir, cache_dir
):
    base = IMAGES if kind == "images" else toy(data_dir, cache_dir, "finetune")
    config = config_of([*base, *options])
    with pytest.raises(UserError, match=named):
        prepare(config, enabled_stages(config))


def test_a_network_that_is_rebuilt_drops_out_as_much():
    description = describe_encoder(load(dropout=0.25))
    again = encoder_from_description(json.loads(json.dumps(description)))
    dropped = {part.p for part in again.body.modules() if isinstance(part, nn.Dropout)}
    assert dropped == {0.25}
