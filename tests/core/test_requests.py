"""What a weighting can ask of a step, in which order, and what is kept apart in it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from tartan.core.body import SharedBody
from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.mixture import RunningMean, RunningSum, weighted_mean
from tartan.core.passes import Passes
from tartan.core.step import Step
from tartan.core.task import StepBatch
from tartan.core.weighting.fixed import Uniform
from tartan.core.weighting.meta import Meta
from tests.core.test_step_properties import problem


class RecordedPasses(Passes):
    """Passes that record what is computed and seeded, in order."""

    def __init__(self, body):
        super().__init__(body, self._record_seed)
        self.done, self.seeded = [], []

    def _record_seed(self, purpose, number):
        self.seeded.append((purpose, number))
        torch.manual_seed(0)

    @contextmanager
    def computing(self, purpose):
        self.done.append(str(purpose))
        with super().computing(purpose):
            yield


def new_step(auxiliaries=2, overlaps=False):
    body, tasks, batches, meta_batch = problem(0, auxiliaries)
    shared = SharedBody(body, torch.float64)
    shared.overlaps = overlaps
    passes = RecordedPasses(shared)
    head = MetaHead(tasks[0].head, MetaHeadSettings(steps=2))
    return Step(passes, tasks, StepBatch(0, batches, meta_batch), head), passes


@pytest.mark.parametrize(
    ("overlaps", "expected"),
    [
        (False, ["end", "mixed", "aux0", "mixed", "aux1", "mixed"]),
        (True, ["end", "aux0", "mixed", "aux1", "mixed", "mixed"]),
    ],
)
def test_the_next_pass_runs_while_a_sum_is_on_its_way(overlaps, expected):
    step, passes = new_step(overlaps=overlaps)

    def mix(step):
        mean = RunningMean()
        for gradient in step.gradients():
            passes.done.append("mixed")
            mean.add(gradient, torch.ones(()))
        return mean.mixed()

    step.run(mix)
    assert passes.done == expected


def test_the_meta_gradient_takes_the_end_tasks_pass_first_and_only_once():
    step, passes = new_step()
    step.run(Meta([task.name for task in step.tasks]).mix)
    assert passes.done == ["end", "meta_head", "meta_gradient", "aux0", "aux1"]


def test_a_weighting_that_leaves_a_task_out_is_refused():
    def all_but_the_last(step):
        total, gradients = RunningSum(), list(step.gradients())
        for gradient in gradients[:-1]:
            total.add(gradient, 1.0)
        return total.mixed()

    with pytest.raises(ValueError, match="the weighting mixed tasks"):
        new_step()[0].run(all_but_the_last)


@pytest.mark.parametrize("factors", [(1.0, 1.0, 1.0), (1.0, -1.0, 1.0)])
def test_a_mixed_gradient_is_gone_and_a_negative_factor_makes_the_weights_not_finite(factors):
    """Using a gradient again would read what the mixture has become."""

    def mix(step):
        mean = RunningMean()
        for gradient, factor in zip(step.gradients(), factors, strict=True):
            norm = gradient.squared_norm
            mean.add(gradient, factor)
            assert gradient.squared_norm is norm
            with pytest.raises(ValueError, match="mixed already"):
                _ = gradient.values
        return mean.mixed()

    record, _ = new_step()[0].run(mix)
    assert record.weights.isfinite().all() == (min(factors) > 0)


def test_losses_that_are_not_one_for_each_unit_are_refused():
    body, tasks, batches, _ = problem(0, 1)
    losses = tasks[1].objective.losses
    tasks[1].objective.losses = lambda *inputs: losses(*inputs).mean()
    step = Step(Passes(SharedBody(body, torch.float64)), tasks, StepBatch(0, batches))
    with pytest.raises(ValueError, match=r"losses of task aux0 have shape \(\), but its micro-bat"):
        step.run(Uniform(["end", "aux0"]).mix)


def test_passes_run_in_mixed_precision_and_weightings_do_not():
    """Autocast would compute every matrix product of a weighting in 16 bits."""
    body, tasks, batches, _ = problem(0, 1, dtype=torch.float32)
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
