"""Properties of a whole META-TARTAN step, for any problem: weights, cosines, memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from benchmarks.steps import peak_bytes
from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.task import Batch, MicroBatch, Task
from tartan.core.weighting.fixed import Random, Uniform
from tartan.core.weighting.loss_based import Uncertainty
from tartan.core.weighting.meta import Meta, MetaExamples
from tests.core.steps import take_step

few = settings(max_examples=8)
seeds = st.integers(0, 1000)
BATCH = 6


class Regression:
    """Squared errors, times `scale`."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def features(self, body, inputs):
        return body(inputs["x"])

    def targets(self, inputs):
        return inputs["y"]

    def owners(self, inputs):
        return torch.arange(len(inputs["y"]))

    def losses(self, body, head, features, targets):
        return self.scale * (head(features).squeeze(1) - targets).square()


def problem(seed, auxiliaries, width=5, dtype=torch.float64):
    """A body, an end task and auxiliary ones, each with its own batch, and a validation batch."""
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)).to(dtype)
    names = ["end", *(f"aux{i}" for i in range(auxiliaries))]
    tasks = [Task(name, Regression(), nn.Linear(width, 1).to(dtype)) for name in names]

    def batch():
        inputs = {"x": torch.randn(BATCH, width).to(dtype), "y": torch.randn(BATCH).to(dtype)}
        return Batch([MicroBatch(inputs, BATCH, BATCH)], BATCH)

    return body, tasks, {name: batch() for name in names}, batch()


def step(seed, body, tasks, batches, meta_batch, weighting, head=None, dtype=torch.float64):
    head = head or MetaHead(tasks[0].head, MetaHeadSettings(steps=3))
    return take_step(
        body, tasks, batches, weighting.to(meta_batch.micro_batches[0].inputs["x"].dtype),
        seed=lambda purpose, part: torch.manual_seed(seed + len(str(purpose))),
        meta_head=head, meta_batch=meta_batch, dtype=dtype,
    )  # fmt: skip


def new_meta(tasks, **options):
    return Meta([task.name for task in tasks], **options)


@few
@given(seeds, st.permutations(range(4)))
def test_permuting_the_auxiliary_tasks_permutes_weights_and_nothing_else(seed, places):
    body, tasks, batches, meta_batch = problem(seed, 4)
    plain = step(seed, body, tasks, batches, meta_batch, new_meta(tasks, eta=1.0))
    mixed = [p.grad for p in body.parameters()]
    permuted = [tasks[0], *(tasks[1 + p] for p in places)]
    found = step(seed, body, permuted, batches, meta_batch, new_meta(permuted, eta=1.0))
    order = torch.tensor([0, *(1 + p for p in places)])
    torch.testing.assert_close(found.weights, plain.weights[order])
    torch.testing.assert_close(found.cosines, plain.cosines[order])
    for parameter, expected in zip(body.parameters(), mixed, strict=True):
        torch.testing.assert_close(parameter.grad, expected)


@few
@given(seeds, st.floats(0.01, 100), st.sampled_from([0, 2]))
def test_scaling_a_tasks_loss_leaves_every_cosine_and_weight_as_it_was(seed, scale, scaled):
    body, tasks, batches, meta_batch = problem(seed, 2)
    plain = step(seed, body, tasks, batches, meta_batch, new_meta(tasks))
    head = MetaHead(tasks[0].head, MetaHeadSettings(steps=0))  # an end task's loss also fits it
    unfitted = step(seed, body, tasks, batches, meta_batch, new_meta(tasks), head=head)
    tasks[scaled].objective = Regression(scale)
    if scaled == 0:
        plain, found = unfitted, step(
            seed, body, tasks, batches, meta_batch, new_meta(tasks), head=head
        )  # fmt: skip
    else:
        found = step(seed, body, tasks, batches, meta_batch, new_meta(tasks))
    torch.testing.assert_close(found.cosines, plain.cosines)
    torch.testing.assert_close(found.weights, plain.weights)
    torch.testing.assert_close(found.gradient_norms[scaled], plain.gradient_norms[scaled] * scale)


@few
@given(seeds)
def test_a_task_along_the_meta_gradient_gains_weight_and_one_against_it_loses(seed):
    """The first auxiliary task is the validation loss itself, through the meta head; the second
    its negative.
    """
    body, tasks, batches, meta_batch = problem(seed, 2)
    head = MetaHead(tasks[0].head, MetaHeadSettings(kind="shared"))
    for index, scale in ((1, 1.0), (2, -1.0)):
        tasks[index].head, tasks[index].objective = tasks[0].head, Regression(scale)
        batches[tasks[index].name] = meta_batch
    weighting = new_meta(tasks, eta=0.5)
    record = step(seed, body, tasks, batches, meta_batch, weighting, head=head)
    assert record.cosines[1:].tolist() == pytest.approx([1, -1], abs=1e-9)
    logits = weighting.logits - 1 / 3
    assert logits[1:].tolist() == pytest.approx([0.5, -0.5], abs=1e-6)
    assert record.weights[1] >= record.weights[0] >= record.weights[2]
    assert record.weights[1] > 1 / 3 > record.weights[2]


def test_a_task_without_any_gradient_has_cosine_zero():
    body, tasks, batches, meta_batch = problem(0, 2)
    tasks[1].objective = Regression(0.0)
    record = step(0, body, tasks, batches, meta_batch, new_meta(tasks))
    assert float(record.cosines[1]) == 0
    assert all(bool(torch.isfinite(p.grad).all()) for p in body.parameters())


@few
@given(seeds)
def test_examples_of_equal_weight_are_plain_meta_tartan(seed):
    body, tasks, batches, meta_batch = problem(seed, 2)
    names = [task.name for task in tasks]
    plain = step(seed, body, tasks, batches, meta_batch, Meta(names, eta=0.1))
    mixed = [p.grad for p in body.parameters()]
    equal = MetaExamples(names, eta=0.1, temperature=1e12)
    found = step(seed, body, tasks, batches, meta_batch, equal)
    torch.testing.assert_close(found.weights, plain.weights)
    torch.testing.assert_close(found.effective_examples, torch.ones(3, dtype=torch.float64))
    for parameter, expected in zip(body.parameters(), mixed, strict=True):
        torch.testing.assert_close(parameter.grad, expected)


@few
@given(seeds)
def test_weighing_examples_turns_a_tasks_gradient_towards_the_meta_gradient(seed):
    body, tasks, batches, meta_batch = problem(seed, 1)
    names = [task.name for task in tasks]
    plain = step(seed, body, tasks, batches, meta_batch, Meta(names))
    products = [plain.cosines[1] * plain.gradient_norms[1]]
    for temperature in (2.0, 0.5):
        weighting = MetaExamples(names, temperature=temperature)
        record = step(seed, body, tasks, batches, meta_batch, weighting)
        products.append(record.cosines[1] * record.gradient_norms[1])
        assert 1 / BATCH <= float(record.effective_examples[1]) <= 1 + 1e-9
    assert products[0] <= products[1] <= products[2]


def test_the_head_of_a_weighted_task_gets_the_plain_gradient():
    body, tasks, batches, meta_batch = problem(3, 1)
    names = [task.name for task in tasks]
    step(3, body, tasks, batches, meta_batch, Meta(names))
    plain = [p.grad.clone() for p in tasks[1].head.parameters()]
    tasks[1].head.zero_grad()
    step(3, body, tasks, batches, meta_batch, MetaExamples(names, temperature=0.1))
    for parameter, expected in zip(tasks[1].head.parameters(), plain, strict=True):
        torch.testing.assert_close(parameter.grad, expected)


@pytest.mark.parametrize("kind", [Meta, MetaExamples])
def test_micro_batches_change_nothing(kind):
    body, tasks, batches, meta_batch = problem(4, 2)
    names = [task.name for task in tasks]
    head = MetaHead(tasks[0].head, MetaHeadSettings(steps=0, examples=BATCH))
    whole = step(4, body, tasks, batches, meta_batch, kind(names), head=head)
    mixed = [p.grad for p in body.parameters()]

    def split(batch):
        (part,) = batch.micro_batches
        pieces = [{k: v[at] for k, v in part.inputs.items()} for at in (slice(4), slice(4, None))]
        return Batch([MicroBatch(p, len(p["y"]), len(p["y"])) for p in pieces], BATCH)

    parts = {name: split(batch) for name, batch in batches.items()}
    found = step(4, body, tasks, parts, split(meta_batch), kind(names), head=head)
    torch.testing.assert_close(found.weights, whole.weights)
    for parameter, expected in zip(body.parameters(), mixed, strict=True):
        torch.testing.assert_close(parameter.grad, expected)


def step_bytes(auxiliaries, weighting_of, order="update_then_step"):
    """The most memory that one step holds beyond what is there before it."""
    body, tasks, batches, meta_batch = problem(0, auxiliaries, width=300, dtype=torch.float32)
    weighting = weighting_of([task.name for task in tasks])
    step(0, body, tasks, batches, meta_batch, weighting, dtype=torch.float32)
    body.zero_grad(set_to_none=True)
    peak = peak_bytes(
        lambda: step(0, body, tasks, batches, meta_batch, weighting, dtype=torch.float32),
        torch.device("cpu"),
    )
    return peak, sum(p.numel() * p.element_size() for p in body.parameters())


@pytest.mark.parametrize("order", ["update_then_step", "step_then_update"])
def test_memory_does_not_grow_with_the_number_of_tasks(order):
    few_tasks, one_gradient = step_bytes(1, lambda names: Meta(names, order=order))
    many_tasks, _ = step_bytes(8, lambda names: Meta(names, order=order))
    assert 3 * one_gradient <= few_tasks < 4 * one_gradient
    assert many_tasks - few_tasks < 0.5 * one_gradient


def test_memory_without_a_meta_gradient_is_one_buffer_less():
    with_it, one_gradient = step_bytes(8, Meta)
    without, _ = step_bytes(8, Random)
    assert 0.5 * one_gradient < with_it - without < 1.5 * one_gradient


def test_memory_of_gramian_weightings_does_grow():
    """So that the test above could fail."""
    gramian = pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    assert gramian
    from tartan.core.weighting.gramian import Gramian

    few_tasks, one_gradient = step_bytes(1, lambda names: Gramian(names, "MGDAWeighting"))
    many_tasks, _ = step_bytes(8, lambda names: Gramian(names, "MGDAWeighting"))
    assert many_tasks - few_tasks > 6 * one_gradient


def test_example_weights_take_no_more_memory_with_more_tasks():
    few_tasks, one_gradient = step_bytes(1, MetaExamples)
    many_tasks, _ = step_bytes(8, MetaExamples)
    assert many_tasks - few_tasks < 0.5 * one_gradient


def test_an_example_without_units_gets_no_weight():
    weighting = MetaExamples(["end", "aux"], temperature=0.005)
    alignments, units = torch.tensor([0.0, -1.0, -1.0, -1.0]), torch.tensor([0.0, 5.0, 5.0, 5.0])
    weights = weighting.weigh_examples(alignments, units)
    torch.testing.assert_close(weights, torch.tensor([0.0, 1.0, 1.0, 1.0]))


@pytest.mark.parametrize("auxiliaries", [0, 3])
@pytest.mark.parametrize("kind", [Uniform, Uncertainty, Meta, Random])
def test_the_norm_is_that_of_the_gradient_that_is_left(kind, auxiliaries):
    body, tasks, batches, meta_batch = problem(4, auxiliaries)
    weighting = kind([task.name for task in tasks])
    record = step(4, body, tasks, batches, meta_batch, weighting)
    expected = sum(p.grad.square().sum() for p in body.parameters())
    assert float(record.squared_norm) == pytest.approx(float(expected), rel=1e-12)
    assert float(expected) > 0
