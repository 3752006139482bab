"""Steps as the tests take them: of a small problem, of texts, and of gradients that are given."""

from __future__ import annotations

import copy

import numpy as np
import torch
from lightning.fabric.utilities import move_data_to_device
from torch import nn
from torch.nn import functional as F

from tartan.core.body import BodyGradient, SharedBody, Summed
from tartan.core.passes import Passes
from tartan.core.seeding import seed_for
from tartan.core.step import Step
from tartan.core.task import Batch, MicroBatch, StepBatch, Task
from tartan.methods.optimisation import Optimisation
from tests.conftest import DEVICE
from tests.core.reference import BODY_LR, CLIP, DECAY, HEAD_LR, fit_by_hand

STEPS, BATCH, CLASSES = 20, 6, 3


class Regression:
    """Squared errors, times `scale`."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def features(self, body, inputs):
        return body(inputs["x"])

    def targets(self, inputs):
        return inputs["y"]

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


def rows(count, seed, encoder, longest=12):
    """Labelled texts of random tokens."""
    rng = np.random.default_rng(seed)
    low, high = 5, len(encoder.tokenizer)
    return [
        {
            "input_ids": [2, *rng.integers(low, high, rng.integers(3, longest)).tolist(), 3],
            "label": int(rng.integers(CLASSES)),
        }
        for _ in range(count)
    ]


def reseed(step):
    return lambda purpose, part: torch.manual_seed(seed_for(3, str(purpose), step, part))


def fitted_by_hand(head, features, labels, settings, step):
    """The meta head of the end task's `head`, by the reference's own AdamW."""
    reseed(step)("meta_head", 0)
    head = copy.deepcopy(head)
    for module in (head.dense, head.out):  # the order in which a head's layers are reset
        module.reset_parameters()
    chosen = torch.randperm(len(features))[: settings.examples]
    return fit_by_hand(
        head, lambda h, x, y: F.cross_entropy(h(x), y), features[chosen], labels[chosen],
        settings.steps, settings.lr, settings.weight_decay,
    )  # fmt: skip


class Updates:
    """Clipping, optimiser and schedule of a run, with the reference's rates."""

    def __init__(self, body, heads):
        optimisation = Optimisation(
            body_lr=BODY_LR, end_head_lr=HEAD_LR, weight_decay=DECAY,
            beta1=0.9, beta2=0.98, eps=1e-6,
        )  # fmt: skip
        self.modules = (body, *heads)
        self.optimiser = optimisation.optimiser(body, heads[0], heads[1:])
        self.schedule = optimisation.schedule(self.optimiser, STEPS)

    def __call__(self):
        """Take a step; return the factor of the rates in it."""
        parameters = [p for module in self.modules for p in module.parameters()]
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        scale = self.schedule.get_last_lr()[0] / BODY_LR
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.schedule.step()
        return scale

    def assert_parameters_are_those_of(self, reference):
        for mine, theirs in zip(self.modules, (reference.body, *reference.heads), strict=True):
            for (name, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
                torch.testing.assert_close(p, q, rtol=0, atol=1e-10, msg=name)


def take_step(
    body, tasks, batches, weighting, *, seed=lambda purpose, part: None, meta_head=None,
    meta_batch=None, meta_head_batch=None, second_batches=None, dtype=torch.float32,
):  # fmt: skip
    """Fill the gradients of one step, as a run does; `seed` gets a purpose and a part's number."""
    batch = StepBatch(0, dict(batches), meta_batch, meta_head_batch, second_batches)
    passes = Passes(SharedBody(body, dtype), seed=seed)
    record, gradients = Step(passes, tasks, batch, meta_head).run(weighting.mix)
    gradients.put()
    return record


def collated(collate, rows, rng):
    """A batch as a loader makes it, on the device of the tests."""
    with torch.device("cpu"):
        batch = collate(rows, rng)
    return move_data_to_device(batch, DEVICE)


class GivenStep:
    """A step whose gradients are given, as vectors, with their losses.

    Attributes:
        mixed: what a weighting made of them, after `run`.
    """

    def __init__(self, gradients, losses=None, meta=None, names=None):
        self.body = SharedBody(nn.Linear(1, 1), torch.float64)
        self.given = [g.double() for g in gradients]
        self.losses = [1.0] * len(gradients) if losses is None else losses
        self.meta = meta
        self.names = names or [str(index) for index in range(len(self.given))]

    @property
    def tasks(self):
        return [Task(name, None, nn.Identity()) for name in self.names]

    @classmethod
    def of_cosines(cls, cosines):
        """Unit vectors that have these cosines with the meta-gradient."""
        cosines = torch.tensor(cosines, dtype=torch.float64)
        sines = (1 - cosines.square()).clamp(min=0).sqrt()
        meta = torch.tensor([1.0, 0.0], dtype=torch.float64)
        return cls(torch.stack([cosines, sines], dim=1), meta=meta)

    def run(self, weighting):
        """The weights that were applied; the mixture is checked to be that of the weights."""
        mixed = weighting.mix(self)
        weights = torch.stack([mixed.weights[name] for name in self.names])
        expected = sum(a * g for a, g in zip(weights, self.given, strict=True))
        torch.testing.assert_close(mixed.gradient[0], expected, check_dtype=False)
        return weights

    def meta_gradient(self):
        return self._gradient("meta", self.meta, 1.0)

    def gradients(self):
        for name, vector, loss in zip(self.names, self.given, self.losses, strict=True):
            yield self._gradient(name, vector.clone(), loss)

    def normal(self, count):
        return torch.randn(count)

    def _gradient(self, name, vector, loss):
        task = Task(name, None, nn.Identity())
        summed = Summed([vector], torch.tensor(loss))
        return BodyGradient(self.body, task, lambda: summed)
