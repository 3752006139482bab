"""The streaming step against Algorithm 1 written out, in float64."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.seeding import seed_for
from tartan.core.task import Task
from tartan.core.weighting.fixed import Uniform
from tartan.core.weighting.meta import Meta
from tartan.encoders.tiny import TinyEncoder
from tartan.kernels.attention import use_kernels
from tartan.objectives.classification import Classification
from tartan.objectives.masked_lm import MaskedLM
from tests.core.reference import Reference
from tests.core.steps import (
    CLASSES,
    STEPS,
    Updates,
    collated,
    fitted_by_hand,
    reseed,
    rows,
    take_step,
)

pytestmark = pytest.mark.usefixtures("float64")


class Setup:
    """The tiny BERT with a classifier and `auxiliaries` tied masked-LM heads."""

    def __init__(self, auxiliaries, micro_batch_size, packed=False):
        self.encoder = TinyEncoder(hidden_size=8, dropout=0.0).load()
        self.body = self.encoder.body.to(torch.float64)
        use_kernels(self.body)  # as where training begins
        torch.manual_seed(1)
        self.end = Classification(classes=CLASSES, dropout=0.0)
        self.mlm = MaskedLM()
        self.tasks = [Task("end", self.end, self.end.new_head(self.encoder))]
        self.tasks += [
            Task(f"mlm{i}", self.mlm, self.mlm.new_head(self.encoder)) for i in range(auxiliaries)
        ]
        self.size, self.packed = micro_batch_size, packed

    def batch(self, name, step, size=None):
        """In the setup's own form; of another `size`, padded."""
        objective = self.end if name in ("end", "meta", "apart") else self.mlm
        seed = seed_for(0, name, step)
        packed = self.packed and size is None
        collate = objective.collate(self.encoder, size or self.size, packed=packed)
        return collated(collate, rows(7, seed, self.encoder), np.random.default_rng(seed))


def whole_loss(objective):
    def loss(body, head, batch):
        (part,) = batch.micro_batches
        inputs = part.inputs
        hidden = body(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]
        ).last_hidden_state
        if isinstance(objective, Classification):
            return F.cross_entropy(head(hidden[:, 0]), inputs["labels"])
        flat = hidden.reshape(-1, hidden.shape[-1])[inputs["positions"]]
        return F.cross_entropy(head(flat, body.get_input_embeddings().weight), inputs["targets"])

    return loss


def reference_of(setup, order, settings, eta):
    body, heads = copy.deepcopy((setup.body, [task.head for task in setup.tasks]))
    tasks = [
        (task.name, head, whole_loss(task.objective))
        for task, head in zip(setup.tasks, heads, strict=True)
    ]

    def fit(body, batch, step):
        if settings.kind == "shared":
            return heads[0]
        inputs = batch.micro_batches[0].inputs
        names = ("input_ids", "attention_mask")
        hidden = body(**{name: inputs[name] for name in names}).last_hidden_state
        features = hidden[:, 0].detach()
        return fitted_by_hand(heads[0], features, inputs["labels"], settings, step)

    meta = {"eta": eta, "order": order, "fit": fit, "loss": whole_loss(setup.end)}
    return Reference(body, tasks, None if order is None else meta)


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize(
    ("auxiliaries", "order", "micro_batch_size", "kind", "examples_from"),
    [
        (1, "update_then_step", 16, "separate", "batch"),
        (1, "update_then_step", 2, "separate", "rest"),
        pytest.param(5, "update_then_step", 16, "separate", "batch", marks=pytest.mark.slow),
        pytest.param(5, "step_then_update", 3, "separate", "rest", marks=pytest.mark.slow),
        (1, "step_then_update", 3, "shared", "batch"),
        (2, None, 16, "separate", "batch"),
        (0, None, 3, "separate", "batch"),
    ],
)
def test_weights_parameters_and_optimiser_follow_algorithm_1(
    auxiliaries, order, micro_batch_size, kind, examples_from, packed
):
    settings = MetaHeadSettings(kind=kind, examples=5, examples_from=examples_from, steps=10)
    eta = 0.5
    ours = Setup(auxiliaries, micro_batch_size, packed)
    reference = reference_of(ours, order, settings, eta)
    names = [task.name for task in ours.tasks]
    weighting = Uniform(names) if order is None else Meta(names, eta=eta, order=order)
    meta_head = None if order is None else MetaHead(ours.tasks[0].head, settings)
    heads = [task.head for task in ours.tasks]
    update = Updates(ours.body, heads)
    for step in range(STEPS):
        batches = {name: ours.batch(name, step) for name in names}
        meta_batch = ours.batch("meta", step)
        apart = ours.batch("apart", step) if settings.extra_examples else None
        record = take_step(
            ours.body, ours.tasks, batches, weighting,
            seed=reseed(step), meta_head=meta_head, meta_batch=meta_batch,
            meta_head_batch=apart, dtype=torch.float64,
        )  # fmt: skip
        scale = update()
        whole = {name: ours.batch(name, step, size=99) for name in names}
        if settings.extra_examples:
            whole["apart"] = ours.batch("apart", step, size=99)
        expected = reference.step(whole, ours.batch("meta", step, size=99), step, scale)
        assert record.weights.tolist() == pytest.approx(expected["alpha"], abs=1e-10)
        assert record.losses.tolist() == pytest.approx(expected["losses"], abs=1e-10)
        if order is not None:
            assert record.cosines.tolist() == pytest.approx(expected["cosines"], abs=1e-9)

    update.assert_parameters_are_those_of(reference)
    for mine, adam in zip((ours.body, *heads), reference.update.adams, strict=True):
        states = [update.optimiser.state[p] for p in mine.parameters()]
        for name, expected in (("exp_avg", adam.m), ("exp_avg_sq", adam.v)):
            flat = torch.cat([state[name].reshape(-1) for state in states])
            torch.testing.assert_close(flat, expected, rtol=0, atol=1e-10, msg=name)
        assert {int(state["step"]) for state in states} == {adam.t} == {STEPS}
    if order is not None:
        torch.testing.assert_close(weighting.logits, torch.tensor(reference.w), atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", ["none", "shared", "separate"])
def test_heads_get_their_own_gradient_unweighted_also_where_the_end_tasks_is_shared(kind):
    setup = Setup(1, 99)
    batches = {task.name: setup.batch(task.name, 0) for task in setup.tasks}
    meta, weighting = {}, Uniform(["end", "mlm0"])
    if kind != "none":
        meta_head = MetaHead(setup.tasks[0].head, MetaHeadSettings(kind=kind))
        meta = {"meta_head": meta_head, "meta_batch": setup.batch("meta", 0)}
        weighting = Meta(["end", "mlm0"])
    take_step(setup.body, setup.tasks, batches, weighting, seed=reseed(0), **meta)
    for task in setup.tasks:
        loss = whole_loss(task.objective)(setup.body, task.head, batches[task.name])
        expected = torch.autograd.grad(loss, list(task.head.parameters()))
        for parameter, gradient in zip(task.head.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)


def test_a_meta_head_fitted_on_other_examples_needs_them():
    ours = Setup(1, 16, packed=False)
    names = [task.name for task in ours.tasks]
    meta_head = MetaHead(ours.tasks[0].head, MetaHeadSettings(examples_from="rest"))
    with pytest.raises(ValueError, match="meta_head_batch"):
        take_step(
            ours.body, ours.tasks, {name: ours.batch(name, 0) for name in names}, Meta(names),
            seed=reseed(0), meta_head=meta_head, meta_batch=ours.batch("meta", 0),
        )  # fmt: skip
