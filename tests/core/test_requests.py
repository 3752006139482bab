"""What a weighting can ask of a step, in which order, and what is kept apart in it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from tartan.core.body import SharedBody
from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.mixture import Mixed, RunningMean, RunningSum, weighted_mean
from tartan.core.passes import Passes, Purpose
from tartan.core.processes import Processes
from tartan.core.step import Step
from tartan.core.task import StepBatch
from tartan.core.weighting.meta import Meta
from tartan.core.weighting.uniform import Uniform
from tests.core.test_step_properties import problem


class Overlapping(Processes):
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
    shared = SharedBody(body, torch.float64)
    passes = Passes(shared, processes, notes.seed, notes.during)
    head = MetaHead(tasks[0].head, MetaHeadSettings(steps=2))
    batch = StepBatch(0, batches, meta_batch)
    return Step(passes, tasks, batch, head), tasks


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        (Processes(), ["end", "mixed", "aux0", "mixed", "aux1", "mixed"]),
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
    passes = Passes(SharedBody(body, torch.float64))
    for chosen in (tasks[:3], [tasks[0], *tasks[4:]]):
        record = Step(passes, chosen, StepBatch(0, batches)).run(
            Uniform([task.name for task in chosen]).mix
        )
        assert len(record.losses) == len(chosen)
        with_gradient = [task for task in tasks if task.head.weight.grad is not None]
        assert with_gradient == chosen
        for task in chosen:
            task.head.zero_grad()


def mixing(*weights, order=(0, 1, 2)):
    """A `mix` that adds the gradients in this order, with weights in the tasks' order."""

    def mix(step):
        total, gradients = RunningSum(), list(step.gradients())
        for index in order:
            total.add(gradients[index], weights[index])
        return total.mixed()

    return mix


@pytest.mark.parametrize("weights", [(0.7, 0.2, 0.1), torch.tensor([0.7, 0.2, 0.1])])
def test_weights_are_recorded_by_task_in_whichever_order_gradients_are_added(weights):
    step, _ = new_step(Notes())
    record = step.run(mixing(*weights, order=(2, 0, 1)))
    assert record.weights.tolist() == pytest.approx([0.7, 0.2, 0.1])


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        (mixing(torch.ones(1), 1.0, 1.0), r"weight of task end has shape \(1,\), must be a scalar"),
        (mixing(1.0, 1.0, 1.0, order=(0, 1)), r"to the tasks end, aux0; give each of end, aux0, a"),
        (lambda step: [g.take() for g in step.gradients()], "returned list, not a Mixed"),
        (lambda step: Mixed(mixing(1.0, 1.0, 1.0)(step).gradient, torch.ones(7)), r"shape \(7,\)"),
        (lambda step: replace(mixing(1.0, 1.0, 1.0)(step), gradient=[None]), "has 1 entries"),
    ],
)
def test_what_is_no_mixture_of_all_gradients_is_refused(mix, message):
    step, _ = new_step(Notes())
    with pytest.raises(ValueError, match=message):
        step.run(mix)


def test_a_mean_has_no_negative_factors():
    step, _ = new_step(Notes())
    gradients, mean = step.gradients(), RunningMean()
    mean.add(next(gradients), 1.0)
    with pytest.raises(ValueError, match=r"factor of task aux0 is -1\.0, .* use RunningSum"):
        mean.add(next(gradients), -1.0)


def test_losses_that_are_not_one_for_each_unit_are_refused():
    body, tasks, batches, _ = problem(0, 1)
    losses = tasks[1].objective.losses
    tasks[1].objective.losses = lambda *inputs: losses(*inputs).mean()
    step = Step(Passes(SharedBody(body, torch.float64)), tasks, StepBatch(0, batches))
    with pytest.raises(ValueError, match=r"losses of task aux0 have shape \(\), but its micro-bat"):
        step.run(Uniform(["end", "aux0"]).mix)


def test_passes_run_in_mixed_precision_and_weightings_do_not():
    """Autocast would compute every matrix product of a weighting in 16 bits."""
    body, tasks, batches, _ = problem(0, 1)
    body, tasks[0].head, tasks[1].head = (m.float() for m in (body, tasks[0].head, tasks[1].head))
    for batch in batches.values():
        for part in batch.micro_batches:
            part.inputs = {name: value.float() for name, value in part.inputs.items()}
    seen, types = [], {}
    body.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))

    def mix(step):
        mixed = weighted_mean(step.gradients(), torch.ones(2))
        types["weighting"] = (torch.eye(2) @ torch.eye(2)).dtype
        return mixed

    with torch.autocast("cpu", torch.bfloat16):
        Step(Passes(SharedBody(body)), tasks, StepBatch(0, batches)).run(mix)
        types["after"] = (torch.eye(2) @ torch.eye(2)).dtype
    assert types == {"weighting": torch.float32, "after": torch.bfloat16}
    assert seen
    assert set(seen) == {torch.bfloat16}
