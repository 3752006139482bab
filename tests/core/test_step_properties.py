"""Properties of a whole META-TARTAN step, for any problem: weights, cosines, memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.steps import peak_bytes
from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.task import Batch, MicroBatch
from tartan.core.weighting.fixed import Random, Uniform
from tartan.core.weighting.loss_based import Uncertainty
from tartan.core.weighting.meta import Meta
from tests.core.steps import BATCH, Regression, problem, take_step

few = settings(max_examples=8)
seeds = st.integers(0, 1000)


def step(seed, body, tasks, batches, meta_batch, weighting, head=None, dtype=torch.float64):
    head = head or MetaHead(tasks[0].head, MetaHeadSettings(steps=3))
    if isinstance(weighting, type):
        weighting = weighting([task.name for task in tasks])
    return take_step(
        body, tasks, batches, weighting.to(dtype),
        seed=lambda purpose, part: torch.manual_seed(seed + len(str(purpose))),
        meta_head=head, meta_batch=meta_batch, dtype=dtype,
    )  # fmt: skip


def gradient_of(module):
    return torch.cat([parameter.grad.flatten() for parameter in module.parameters()])


@few
@given(seeds, st.permutations(range(4)))
def test_permuting_the_auxiliary_tasks_permutes_weights_and_nothing_else(seed, places):
    body, tasks, batches, meta_batch = problem(seed, 4)
    plain = step(seed, body, tasks, batches, meta_batch, Meta)
    mixed = gradient_of(body)
    permuted = [tasks[0], *(tasks[1 + p] for p in places)]
    found = step(seed, body, permuted, batches, meta_batch, Meta)
    order = torch.tensor([0, *(1 + p for p in places)])
    torch.testing.assert_close(found.weights, plain.weights[order])
    torch.testing.assert_close(found.cosines, plain.cosines[order])
    torch.testing.assert_close(gradient_of(body), mixed)


@few
@given(seeds, st.floats(0.01, 100), st.sampled_from([0, 2]))
def test_scaling_a_tasks_loss_leaves_every_cosine_and_weight_as_it_was(seed, scale, scaled):
    body, tasks, batches, meta_batch = problem(seed, 2)
    # an end task's loss also fits the head
    head = MetaHead(tasks[0].head, MetaHeadSettings(steps=3 if scaled else 0))
    plain = step(seed, body, tasks, batches, meta_batch, Meta, head)
    tasks[scaled].objective = Regression(scale)
    found = step(seed, body, tasks, batches, meta_batch, Meta, head)
    torch.testing.assert_close(found.cosines, plain.cosines)
    torch.testing.assert_close(found.weights, plain.weights)
    torch.testing.assert_close(found.gradient_norms[scaled], plain.gradient_norms[scaled] * scale)


@few
@given(seeds)
def test_a_task_along_the_meta_gradient_gains_weight_and_one_against_it_loses(seed):
    """The first auxiliary task is the validation loss itself, the second its negative."""
    body, tasks, batches, meta_batch = problem(seed, 2)
    head = MetaHead(tasks[0].head, MetaHeadSettings(kind="shared"))
    for index, scale in ((1, 1.0), (2, -1.0)):
        tasks[index].head, tasks[index].objective = tasks[0].head, Regression(scale)
        batches[tasks[index].name] = meta_batch
    weighting = Meta([task.name for task in tasks], eta=0.5)
    record = step(seed, body, tasks, batches, meta_batch, weighting, head)
    assert record.cosines[1:].tolist() == pytest.approx([1, -1], abs=1e-9)
    assert (weighting.logits - 1 / 3)[1:].tolist() == pytest.approx([0.5, -0.5], abs=1e-6)
    assert record.weights[1] >= record.weights[0] >= record.weights[2]
    assert record.weights[1] > 1 / 3 > record.weights[2]


def test_a_task_without_any_gradient_has_cosine_zero():
    body, tasks, batches, meta_batch = problem(0, 2)
    tasks[1].objective = Regression(0.0)
    record = step(0, body, tasks, batches, meta_batch, Meta)
    assert float(record.cosines[1]) == 0
    assert gradient_of(body).isfinite().all()


def test_micro_batches_change_nothing():
    body, tasks, batches, meta_batch = problem(4, 2)
    head = MetaHead(tasks[0].head, MetaHeadSettings(steps=0, examples=BATCH))
    whole = step(4, body, tasks, batches, meta_batch, Meta, head)
    mixed = gradient_of(body)

    def split(batch):
        (part,) = batch.micro_batches
        pieces = [{k: v[at] for k, v in part.inputs.items()} for at in (slice(4), slice(4, None))]
        return Batch([MicroBatch(p, len(p["y"]), len(p["y"])) for p in pieces], BATCH)

    parts = {name: split(batch) for name, batch in batches.items()}
    found = step(4, body, tasks, parts, split(meta_batch), Meta, head)
    torch.testing.assert_close(found.weights, whole.weights)
    torch.testing.assert_close(gradient_of(body), mixed)


def step_bytes(auxiliaries, weighting_of):
    """The most memory that one step holds beyond what is there before it, in gradients."""
    body, tasks, batches, meta_batch = problem(0, auxiliaries, width=300, dtype=torch.float32)
    weighting = weighting_of([task.name for task in tasks])
    given = (0, body, tasks, batches, meta_batch, weighting)
    step(*given, dtype=torch.float32)
    body.zero_grad(set_to_none=True)
    peak = peak_bytes(lambda: step(*given, dtype=torch.float32), torch.device("cpu"))
    return peak / sum(p.numel() * p.element_size() for p in body.parameters())


def test_memory_does_not_grow_with_the_number_of_tasks():
    for order in ("update_then_step", "step_then_update"):
        few_tasks = step_bytes(1, lambda names, o=order: Meta(names, order=o))
        many_tasks = step_bytes(8, lambda names, o=order: Meta(names, order=o))
        assert 3 <= few_tasks < 4
        assert many_tasks - few_tasks < 0.5
    assert 0.5 < many_tasks - step_bytes(8, Random) < 1.5  # no meta-gradient


@pytest.mark.parametrize("auxiliaries", [0, 3])
@pytest.mark.parametrize("kind", [Uniform, Uncertainty, Meta, Random])
def test_the_norm_is_that_of_the_gradient_that_is_left(kind, auxiliaries):
    body, tasks, batches, meta_batch = problem(4, auxiliaries)
    record = step(4, body, tasks, batches, meta_batch, kind)
    expected = float(gradient_of(body).square().sum())
    assert float(record.squared_norm) == pytest.approx(expected, rel=1e-12)
    assert expected > 0
