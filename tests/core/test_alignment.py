"""Every example's alignment by one forward-mode product, against gradients taken one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tartan.core.body import BodyGradient, SharedBody, Summed
from tartan.core.passes import Passes
from tartan.core.seeding import seed_for
from tartan.core.task import Task
from tartan.encoders.tiny import TinyEncoder
from tartan.kernels.attention import IMPLEMENTATION, use_kernels
from tartan.objectives.classification import Classification
from tartan.objectives.masked_lm import MaskedLM
from tests.core.steps import collated, problem


def example_alignments(body, task, batch, direction, reseed):
    """Of the whole batch, whatever its micro-batches."""
    shared = SharedBody(body, torch.float64)
    passes = Passes(shared, seed=lambda purpose, part: reseed(purpose.task, part))
    along = BodyGradient(shared, task, lambda: Summed(direction, torch.zeros(())))
    return passes.alignments(task, batch, along)


def reseed(name, part):
    torch.manual_seed(seed_for(5, name, part))


def text_problem(objective, micro_batch_size=99, dropout=0.0, dtype=torch.float64, packed=False):
    encoder = TinyEncoder(hidden_size=8, dropout=dropout).load()
    use_kernels(encoder.body)
    assert encoder.body.config._attn_implementation == IMPLEMENTATION
    torch.manual_seed(1)
    head = objective.new_head(encoder)
    rng = np.random.default_rng(0)
    rows = [
        {"input_ids": [2, *rng.integers(5, 700, rng.integers(3, 14)).tolist(), 3], "label": i % 3}
        for i in range(9)
    ]
    collate = objective.collate(encoder, micro_batch_size, packed=packed)
    batch = collated(collate, rows, np.random.default_rng(4))
    return encoder.body.to(dtype), Task("t", objective, head.to(dtype)), batch


def normed_problem():
    """A body with running statistics."""
    body, (task, *_), batches, _ = problem(0, 0)
    return nn.Sequential(body, nn.BatchNorm1d(5, dtype=torch.float64)), task, batches["end"]


def direction_of(body):
    torch.manual_seed(2)
    return [torch.randn_like(p) for p in body.parameters()]


def one_by_one(body, task, batch, direction):
    """The definition: each example's mean loss, its gradient, its inner product."""
    found = []
    for index, part in enumerate(batch.micro_batches):
        for example in range(part.examples):
            reseed(task.name, index)
            features = task.objective.features(body, part.inputs)
            targets = task.objective.targets(part.inputs)
            losses = task.objective.losses(body, task.head, features, targets)
            own = losses[task.objective.owners(part.inputs) == example]
            gradients = torch.autograd.grad(
                own.sum() / max(1, len(own)), list(body.parameters()), materialize_grads=True
            )
            found.append(
                float(sum((g * d).sum() for g, d in zip(gradients, direction, strict=True)))
            )
    return found


PROBLEMS = {
    "classification": lambda: text_problem(Classification(3, dropout=0.0)),
    "masked words": lambda: text_problem(MaskedLM()),
    "few masked words": lambda: text_problem(MaskedLM(probability=0.05)),
    "micro-batches": lambda: text_problem(MaskedLM(), micro_batch_size=4),
    "packed": lambda: text_problem(Classification(3, dropout=0.0), 4, packed=True),
    "packed, masked words": lambda: text_problem(MaskedLM(), 4, packed=True),
    "normed": normed_problem,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_alignments_are_inner_products_with_each_examples_own_gradient(name):
    body, task, batch = PROBLEMS[name]()
    direction = direction_of(body)
    alignments, units = example_alignments(body, task, batch, direction, reseed)
    expected = one_by_one(body, task, batch, direction)
    assert alignments.tolist() == pytest.approx(expected, abs=1e-10)
    assert any(abs(value) > 1e-3 for value in expected)
    assert int(units.sum()) == batch.units


def test_it_works_in_mixed_precision():
    body, task, batch = text_problem(MaskedLM(), dtype=torch.float32)
    direction = direction_of(body)
    exact, _ = example_alignments(body, task, batch, direction, reseed)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, _ = example_alignments(body, task, batch, direction, reseed)
    torch.testing.assert_close(mixed.float(), exact, atol=0.05 * float(exact.abs().max()), rtol=0.1)
