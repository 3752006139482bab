"""Layers of a body: frozen, drawn anew, and trained at rates of their own."""

from __future__ import annotations

import pytest
import torch

from tartan.encoders.layers import reinitialise_top
from tartan.methods.optimisation import Optimisation
from tests.encoders.bodies import random_body


def named(body):
    return {name: value.clone() for name, value in body.state_dict().items()}


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "modernbert"])
def test_top_layers_begin_anew_by_the_seed_alone(kind):
    body = random_body(kind)
    with torch.no_grad():
        for parameter in body.parameters():
            parameter += 1
    before = named(body)
    reinitialise_top(body, 1, seed=3)
    once = named(body)
    changed = {name for name in before if not before[name].equal(once[name])}
    last = str(body.config.num_hidden_layers - 1)
    assert changed == {n for n, _ in body.named_parameters() if last in n.split(".")}
    assert max(float(once[n].std()) for n in changed if once[n].ndim > 1) < 0.1
    torch.manual_seed(1)
    reinitialise_top(body, 1, seed=3)
    assert all(once[name].equal(value) for name, value in named(body).items())
    reinitialise_top(body, 1, seed=4)
    assert any(not once[name].equal(value) for name, value in named(body).items())


def test_each_layer_has_its_share_of_the_rate_above_it():
    body, head = random_body("bert"), torch.nn.Linear(4, 2)
    depth = body.config.num_hidden_layers
    optimiser = Optimisation(body_lr=1.0, end_head_lr=5.0, layer_decay=0.5).optimiser(
        body, head, [torch.nn.Linear(3, 3)]
    )
    lr_of = {p: group["lr"] for group in optimiser.param_groups for p in group["params"]}
    assert len(lr_of) == len([*body.parameters()]) + 4
    for name, parameter in body.named_parameters():
        parts = name.split(".")
        below = depth if "embeddings" in parts else depth - 1 - int(parts[parts.index("layer") + 1])
        assert lr_of[parameter] == pytest.approx(0.5**below), name
    assert lr_of[head.weight] == 5.0
