"""What a weighting can ask of a step, in which order, and what is kept apart in it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from src.core.body import WholeBody
from src.core.meta_head import MetaHead, MetaHeadSettings
from src.core.mixture import RunningMean
from src.core.passes import PassContext, Passes, Purpose
from src.core.processes import SingleProcess
from src.core.step import Step
from src.core.task import StepBatch
from src.core.weighting.meta import Meta
from src.core.weighting.uniform import Uniform
from tests.core.test_step_properties import problem


class Overlapping(SingleProcess):
    """Processes whose sums take time."""

    overlaps = True


class Notes:
    """What a step does, in order."""

    def __init__(self):
        self.done, self.seeded = [], []

    @contextmanager
    def during(self, purpose):
        self.done.append(str(purpose))
        yield

    def seed(self, purpose, part):
        self.seeded.append((purpose, part))
        torch.manual_seed(0)


def new_step(notes, auxiliaries=2, processes=None):
    body, tasks, batches, meta_batch = problem(0, auxiliaries)
    around = PassContext(processes or SingleProcess(), notes.seed, notes.during)
    head = MetaHead(tasks[0].head, MetaHeadSettings(steps=2))
    batch = StepBatch(0, batches, meta_batch)
    return Step(Passes(WholeBody(body, torch.float64), around), tasks, batch, head), tasks


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        (SingleProcess(), ["end", "mixed", "aux0", "mixed", "aux1", "mixed"]),
        (Overlapping(), ["end", "aux0", "mixed", "aux1", "mixed", "mixed"]),
    ],
)
def test_the_next_pass_runs_while_a_sum_is_on_its_way(processes, expected):
    notes = Notes()
    step, _ = new_step(notes, processes=processes)

    def mix(step):
        mean = RunningMean()
        for gradient in step.gradients():
            notes.done.append("mixed")
            mean.add(gradient, torch.ones(()))
        return mean.mixed()

    step.run(mix)
    assert notes.done == expected


def test_the_meta_gradient_takes_the_end_tasks_pass_first_and_only_once():
    notes = Notes()
    step, tasks = new_step(notes)
    step.run(Meta([task.name for task in tasks]).mix)
    assert notes.done == ["end", "meta_head", "meta_gradient", "aux0", "aux1"]


def test_a_task_called_as_what_serves_the_meta_gradient_draws_apart_from_it():
    notes = Notes()
    step, tasks = new_step(notes)
    batch = step._batch.tasks
    for task, name in zip(tasks[1:], ("meta_gradient", "meta_head"), strict=True):
        batch[name] = batch.pop(task.name)
        task.name = name
    step.run(Meta([task.name for task in tasks]).mix)
    assert len(notes.seeded) == len(set(notes.seeded)) == 5
    assert Purpose("meta_gradient") != Purpose("task", "meta_gradient")


def test_the_meta_gradient_is_asked_for_before_the_gradients():
    step, _ = new_step(Notes())

    def late(step):
        for _ in step.gradients():
            step.meta_gradient()

    with pytest.raises(ValueError, match="before all gradients"):
        step.run(late)


def test_a_weighting_that_leaves_a_task_out_is_refused():
    step, _ = new_step(Notes())

    def only_the_first(step):
        mean = RunningMean()
        mean.add(next(step.gradients()), torch.ones(()))
        return mean.mixed()

    with pytest.raises(ValueError, match="1 of 3 tasks"):
        step.run(only_the_first)


def test_a_mixed_gradient_is_gone():
    """Using it again would read what the mixture has become."""
    step, _ = new_step(Notes())

    def mix(step):
        mean = RunningMean()
        for gradient in step.gradients():
            norm = gradient.squared_norm
            mean.add(gradient, torch.ones(()))
            assert gradient.squared_norm is norm
            with pytest.raises(ValueError, match="mixed already"):
                _ = gradient.values
        return mean.mixed()

    step.run(mix)


def test_tasks_may_differ_from_step_to_step():
    """A weighting over many tasks may have only some of them passed in a step."""
    body, tasks, batches, _ = problem(0, 5)
    passes = Passes(WholeBody(body, torch.float64))
    for chosen in (tasks[:3], [tasks[0], *tasks[4:]]):
        record = Step(passes, chosen, StepBatch(0, batches)).run(
            Uniform([task.name for task in chosen]).mix
        )
        assert len(record.losses) == len(chosen)
        with_gradient = [task for task in tasks if task.head.weight.grad is not None]
        assert with_gradient == chosen
        for task in chosen:
            task.head.zero_grad()
