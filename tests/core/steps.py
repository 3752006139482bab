"""Steps as the tests take them: one call, and gradients that are given."""

from __future__ import annotations

import torch
from lightning.fabric.utilities import move_data_to_device
from torch import nn

from tartan.core.body import BodyGradient, SharedBody, Summed
from tartan.core.passes import Passes
from tartan.core.step import Step
from tartan.core.task import StepBatch, Task
from tests.conftest import DEVICE


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

    def run(self, weighting, sampled=False):
        """The weights that were applied; the mixture is checked to be that of the weights."""
        mixed = weighting.mix_sampled(self) if sampled else weighting.mix(self)
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
