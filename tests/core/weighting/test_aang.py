"""AANG's step against a slow reference in float64, and properties of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.seeding import seed_for
from tartan.core.task import Task
from tartan.core.weighting.aang import Aang, Factored
from tartan.data.batches import BatchNeeds, StepBatches, TaskExamples
from tartan.encoders.tiny import TinyEncoder
from tartan.methods.optimisation import Optimisation
from tartan.objectives.classification import Classification
from tests.core.aang_reference import AangReference
from tests.core.reference import fit_by_hand
from tests.core.steps import collated, take_step
from tests.objectives.spaces import space

STEPS, CLASSES, TOTAL = 20, 3, 13


@pytest.fixture
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def rows(count, seed, encoder):
    rng = np.random.default_rng(seed)
    return [
        {
            "input_ids": [2, *rng.integers(5, len(encoder.tokenizer), rng.integers(3, 9)), 3],
            "label": int(rng.integers(CLASSES)),
        }
        for _ in range(count)
    ]


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
        return collated(collate, rows(7, seed, self.encoder), np.random.default_rng(seed))

    def batch(self, name, step, count, size=None):
        """The first `count` of the rows that all objectives of its group get in the step."""
        seed = seed_for(0, self.members[name].draw_group, step)
        collate = self._collate(self.by_name[name].objective, size)
        chosen = rows(TOTAL, seed, self.encoder)[:count]
        return collated(collate, chosen, np.random.default_rng(seed))

    def step_batches(self, weighting, sampled, step):
        sizes = weighting.batch_sizes(sampled, TOTAL)
        own = {name: self.batch(name, step, sizes[name]) for name in sampled}
        return {"end_task": self.end_batch("end", step)} | own


def reseed(step):
    return lambda purpose, part: torch.manual_seed(seed_for(3, str(purpose), step, part))


def loss_of(objective):
    def loss(body, head, batch):
        (part,) = batch.micro_batches
        features = objective.features(body, part.inputs)
        return objective.losses(body, head, features, objective.targets(part.inputs)).mean()

    return loss


def reference_of(setup, settings, learns, **rates):
    body, heads = copy.deepcopy((setup.body, setup.heads))
    twin = {id(ours): theirs for ours, theirs in zip(setup.heads, heads, strict=True)}
    others = setup.tasks[1:]
    objectives = {
        task.name: (tuple(task.name.split("-")), twin[id(task.head)], loss_of(task.objective))
        for task in others
    }

    def fit(body, batch, step):
        (part,) = batch.micro_batches
        features = setup.end.features(body, part.inputs).detach()
        reseed(step)("meta_head", 0)
        head = copy.deepcopy(heads[0])
        for module in (head.dense, head.out):
            module.reset_parameters()
        chosen = torch.randperm(len(features))[: settings.examples]
        return fit_by_hand(
            head, lambda h, x, y: F.cross_entropy(h(x), y), features[chosen],
            part.inputs["labels"][chosen], settings.steps, settings.lr, settings.weight_decay,
        )  # fmt: skip

    return AangReference(
        body, (heads[0], loss_of(setup.end)), objectives, fit, total=TOTAL, learns=learns, **rates,
        body_lr=1e-3, head_lr=1e-2, decay=0.1, beta1=0.9, beta2=0.98, eps=1e-6, clip=1.0,
    )  # fmt: skip


def sampling(setup, count, stage="joint"):
    """Steps of tasks whose examples are never looked at."""
    unread = TaskExamples(None, None, TOTAL)
    needs = BatchNeeds(stage, tuple(setup.names), sampled=count)
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
    optimisation = Optimisation(
        body_lr=1e-3, end_head_lr=1e-2, weight_decay=0.1, beta1=0.9, beta2=0.98, eps=1e-6
    )
    optimiser = optimisation.optimiser(ours.body, ours.heads[0], ours.heads[1:])
    schedule = optimisation.schedule(optimiser, STEPS)
    parameters = [p for m in (ours.body, *ours.heads) for p in m.parameters()]
    draws, seen = sampling(ours, count), set()
    for step in range(STEPS):
        sampled = draws.sampled(step)
        tasks = [ours.tasks[0], *(ours.by_name[name] for name in sampled)]
        record = take_step(
            ours.body, tasks, ours.step_batches(weighting, sampled, step), weighting,
            seed=reseed(step), meta_head=meta_head,
            meta_batch=ours.end_batch("meta", step) if learns else None, dtype=torch.float64,
        )  # fmt: skip
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        scale = schedule.get_last_lr()[0] / 1e-3
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        expected = reference.step(
            ours.end_batch("end", step, size=99),
            sampled,
            lambda name, n, step=step: ours.batch(name, step, n, size=99),
            ours.end_batch("meta", step, size=99),
            step,
            scale,
        )
        seen.add(tuple(sorted(expected["sizes"].values())))
        assert record.weights.tolist() == pytest.approx(expected["weights"], abs=1e-10)
        assert record.losses.tolist() == pytest.approx(expected["losses"], abs=1e-10)
        if learns:
            assert record.cosines.tolist() == pytest.approx(expected["cosines"], abs=1e-10)
    assert len(seen) > 1
    for mine, theirs in zip(
        (ours.body, *ours.heads), (reference.body, *reference.heads), strict=True
    ):
        for (name, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=0, atol=1e-10, msg=name)
    by_stage = dict(
        zip(("data", "transform", "representation", "output"), reference.W, strict=True)
    )
    factors = [
        reference.W_all[tuple(choice.split("-"))] if stage == "objective" else
        by_stage[stage][choice]
        for stage, choice in (name.split("/") for name in weighting.factor_names)
    ]  # fmt: skip
    assert weighting.factors.tolist() == pytest.approx(factors, abs=1e-10)
    assert weighting.two_way.tolist() == pytest.approx([*reference.two_way.values()], abs=1e-10)
    if learns:
        assert weighting.factors.abs().max() > 0.1


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("weighting", [Aang, Factored])
def test_an_objectives_gradient_does_not_depend_on_which_others_were_sampled(weighting, packed):
    setup = Setup("aang_td", dropout=0.2, packed=packed)
    own = "task-bert-random_factorised-denoise"
    others = [
        ("task-mask-bidirectional-end_label", "task-none-left_to_right-denoise"),
        ("task-none-left_to_right-denoise", "task-replace-right_to_left-denoise"),
        ("task-replace-bidirectional-denoise", "task-none-right_to_left-denoise"),
    ]
    found = []
    for pair in others:
        sampled = [name for name in setup.names if name in (own, *pair)]
        mixed = weighting(setup.names)
        # alone of its representation: the shares are equal whatever the others
        assert set(mixed.batch_sizes(sampled, 12).values()) == {4}
        batches = {name: setup.batch(name, 0, 4) for name in sampled}
        batches["end_task"] = setup.end_batch("end", 0)
        gradients = {}

        class Watching(weighting):
            def mix(self, step, gradients=gradients):
                given = step.gradients

                def watched():
                    for gradient in given():
                        values = [None if v is None else v.clone() for v in gradient.values]
                        gradients[gradient.task.name] = values
                        yield gradient

                step.gradients = watched
                return super().mix(step)

        watching = Watching(setup.names)
        meta = MetaHead(setup.tasks[0].head, MetaHeadSettings(examples=4, steps=2))
        learns = watching.needs.meta_gradient
        take_step(
            setup.body, [setup.tasks[0], *(setup.by_name[name] for name in sampled)], batches,
            watching, seed=reseed(0), meta_head=meta if learns else None,
            meta_batch=setup.end_batch("meta", 0) if learns else None,
        )  # fmt: skip
        found.append(gradients[own])
    first, *rest = found
    for gradient in rest:
        assert all(
            (a is None and b is None) or torch.equal(a, b)
            for a, b in zip(first, gradient, strict=True)
        )
    assert any(g is not None and g.abs().max() > 0 for g in first)


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


def test_overall_weights_sum_to_one_and_start_equal():
    names = ["end_task", *space("aang_td").members("aang")]
    overall = Aang(names).overall()
    assert overall[0] == 0.5
    torch.testing.assert_close(overall[1:], torch.full((24,), 0.5 / 24))


def test_tasks_that_are_not_composed_are_refused():
    with pytest.raises(ValueError, match="auxiliary task 'tapt' is no composed objective"):
        Factored(["end_task", "tapt"])
