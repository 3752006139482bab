"""AANG's step against a slow reference in float64, and properties of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.seeding import seed_for
from tartan.core.task import Task
from tartan.core.task_names import STAGES
from tartan.core.weighting.aang import Aang, Factored, apportioned
from tartan.data.batches import BatchNeeds, StepBatches, TaskExamples
from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.classification import Classification
from tests.core.aang_reference import AangReference
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
from tests.objectives.spaces import space

TOTAL = 13


class Setup:
    """The tiny BERT, a classifier, and the objectives of a space with one head an output."""

    def __init__(self, auxiliary, micro_batch_size=99, dropout=0.0, packed=False):
        self.encoder = TinyEncoder(hidden_size=8, dropout=dropout).load()
        self.body = self.encoder.body.to(torch.get_default_dtype())
        torch.manual_seed(1)
        self.end = Classification(classes=CLASSES, dropout=0.0)
        self.tasks = [Task("end_task", self.end, self.end.new_head(self.encoder))]
        self.members = space(auxiliary).members("aang")
        heads = {}
        for name, member in self.members.items():
            objective = copy.copy(member.objective)
            object.__setattr__(objective, "classes", CLASSES)
            if member.objective.shared_head not in heads:
                heads[member.objective.shared_head] = objective.new_head(self.encoder).eval()
            self.tasks.append(Task(name, objective, heads[member.objective.shared_head]))
        self.heads = [self.tasks[0].head, *heads.values()]
        self.names = [task.name for task in self.tasks]
        self.by_name = {task.name: task for task in self.tasks}
        self.size, self.packed = micro_batch_size, packed

    def _collate(self, objective, size):
        """In the setup's own form; of another `size`, padded and whole."""
        if size is not None:
            return objective.collate(self.encoder, size)
        return objective.collate(self.encoder, self.size, packed=self.packed, on_cpu=True)

    def end_batch(self, kind, step, size=None):
        seed = seed_for(0, kind, step)
        collate = self._collate(self.end, size)
        return collated(collate, rows(7, seed, self.encoder, 9), np.random.default_rng(seed))

    def batch(self, name, step, count, size=None):
        """The first `count` of the rows that all objectives of its group get in the step."""
        seed = seed_for(0, self.members[name].draw_group, step)
        collate = self._collate(self.by_name[name].objective, size)
        chosen = rows(TOTAL, seed, self.encoder, 9)[:count]
        return collated(collate, chosen, np.random.default_rng(seed))

    def step_batches(self, weighting, sampled, step):
        sizes = weighting.batch_sizes(sampled, TOTAL)
        own = {name: self.batch(name, step, sizes[name]) for name in sampled}
        return {"end_task": self.end_batch("end", step)} | own


def loss_of(objective):
    def loss(body, head, batch):
        (part,) = batch.micro_batches
        features = objective.features(body, part.inputs)
        return objective.losses(body, head, features, objective.targets(part.inputs)).mean()

    return loss


def reference_of(setup, settings, learns, **rates):
    body, heads = copy.deepcopy((setup.body, setup.heads))
    twin = {id(ours): theirs for ours, theirs in zip(setup.heads, heads, strict=True)}
    objectives = {
        task.name: (tuple(task.name.split("-")), twin[id(task.head)], loss_of(task.objective))
        for task in setup.tasks[1:]
    }

    def fit(body, batch, step):
        inputs = batch.micro_batches[0].inputs
        features = setup.end.features(body, inputs).detach()
        return fitted_by_hand(heads[0], features, inputs["labels"], settings, step)

    end = (heads[0], loss_of(setup.end))
    return AangReference(body, end, objectives, fit, total=TOTAL, learns=learns, **rates)


def sampling(setup, count):
    """Steps of tasks whose examples are never looked at."""
    unread = TaskExamples(None, None, TOTAL)
    needs = BatchNeeds("joint", tuple(setup.names), sampled=count)
    return StepBatches(dict.fromkeys(setup.names, unread), None, STEPS, 0, needs)


@pytest.mark.parametrize(
    ("auxiliary", "count", "learns", "packed"),
    [
        ("aang_td", 3, True, False),
        ("aang_td", 6, True, True),
        ("aang_td_ed", 3, True, True),
        ("aang_td_ed", 6, True, False),
        ("aang_td_ed", 6, False, True),
    ],
)
def test_weights_parameters_and_factors_follow_the_reference(
    auxiliary, count, learns, packed, float64
):
    settings = MetaHeadSettings(examples=5, steps=4, lr=1e-2)
    rates = {"factor_lr": 1.0, "two_way_lr": 0.3}  # large, so that shares move
    ours = Setup(auxiliary, micro_batch_size=99 if count == 3 else 4, packed=packed)
    reference = reference_of(ours, settings, learns, **rates)
    weighting = Aang(ours.names, **rates) if learns else Factored(ours.names)
    meta_head = MetaHead(ours.tasks[0].head, settings) if learns else None
    update = Updates(ours.body, ours.heads)
    draws, seen = sampling(ours, count), set()
    for step in range(STEPS):
        sampled = draws.sampled(step)
        tasks = [ours.tasks[0], *(ours.by_name[name] for name in sampled)]
        record = take_step(
            ours.body, tasks, ours.step_batches(weighting, sampled, step), weighting,
            seed=reseed(step), meta_head=meta_head,
            meta_batch=ours.end_batch("meta", step) if learns else None, dtype=torch.float64,
        )  # fmt: skip
        scale = update()
        end, meta = (ours.end_batch(kind, step, size=99) for kind in ("end", "meta"))
        batch_of = lambda name, n, step=step: ours.batch(name, step, n, size=99)  # noqa: E731
        expected = reference.step(end, sampled, batch_of, meta, step, scale)
        seen.add(tuple(sorted(expected["sizes"].values())))
        assert record.weights.tolist() == pytest.approx(expected["weights"], abs=1e-10)
        assert record.losses.tolist() == pytest.approx(expected["losses"], abs=1e-10)
        if learns:
            assert record.cosines.tolist() == pytest.approx(expected["cosines"], abs=1e-10)
    assert len(seen) > 1
    update.assert_parameters_are_those_of(reference)
    by_stage = dict(zip(STAGES, reference.W, strict=True))
    by_stage["objective"] = {"-".join(parts): w for parts, w in reference.W_all.items()}
    names = [name.split("/") for name in weighting.factor_names]
    factors = [by_stage[stage][choice] for stage, choice in names]
    assert weighting.factors.tolist() == pytest.approx(factors, abs=1e-10)
    assert weighting.two_way.tolist() == pytest.approx([*reference.two_way.values()], abs=1e-10)
    if learns:
        assert weighting.factors.abs().max() > 0.1


def test_what_shares_a_batch_follows_its_factors():
    names = ["end_task", *space("aang_td").members("aang")]
    weighting = Factored(names)
    at = {name: place for place, name in enumerate(weighting.factor_names)}
    weighting.factors[at["representation/bidirectional"]] = torch.tensor(3.0).log()
    weighting.factors[at["transform/bert"]] = torch.tensor(2.0).log()
    sampled = [
        "task-mask-bidirectional-denoise",
        "task-bert-bidirectional-denoise",
        "task-bert-bidirectional-end_label",
        "task-none-left_to_right-denoise",
    ]
    # 3/4 to bidirectional, of which 1/3 to mask and 2/3 to bert, whose two objectives share it
    assert weighting.batch_sizes(sampled, 48) == dict(zip(sampled, [12, 24, 24, 12], strict=True))


def test_overall_weights_start_equal_and_tasks_have_to_be_composed():
    names = ["end_task", *space("aang_td").members("aang")]
    overall = Aang(names).overall()
    torch.testing.assert_close(overall, torch.tensor([0.5, *[0.5 / 24] * 24]))
    with pytest.raises(ValueError, match="auxiliary task 'tapt' is no composed objective"):
        Factored(["end_task", "tapt"])


def test_examples_sum_to_the_total_and_leave_nobody_out():
    rng = np.random.default_rng(0)
    for _ in range(300):
        count = int(rng.integers(1, 9))
        total = int(rng.integers(count, 60))
        shares = rng.dirichlet(np.full(count, 0.3)).tolist()
        parts = apportioned(total, shares)
        assert sum(parts) == total
        assert min(parts) >= 1
        if all(total * share >= 1 for share in shares):
            assert all(abs(p - total * s) < 1 for p, s in zip(parts, shares, strict=True))
