"""TorchJD's weightings, through one adapter."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from tartan.core.weighting.fixed import Uniform
from tartan.core.weighting.gramian import Gramian
from tests.conftest import ROOT
from tests.core.steps import problem, take_step

CONFIGS = [
    path
    for path in sorted((ROOT / "conf" / "weighting").glob("*.yaml"))
    if str(OmegaConf.load(path)._target_).endswith("Gramian")
]


NAMES = ["end", "aux0", "aux1"]


def task_gradients(body, tasks, batches):
    rows = []
    for task in tasks:
        inputs = batches[task.name].micro_batches[0].inputs
        features = task.objective.features(body, inputs)
        loss = task.objective.losses(body, task.head, features, inputs["y"]).mean()
        rows.append(
            torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, body.parameters())])
        )
    return torch.stack(rows)


def new(path: Path):
    """The configured weighting, where what it needs is installed."""
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    config = OmegaConf.load(path)
    try:
        return Gramian(NAMES, config.torchjd, dict(config.options))
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_mixed_gradient_is_torchjds_combination(path: Path):
    weighting, again = new(path), new(path)
    body, tasks, batches, _ = problem(0, 2)
    torch.manual_seed(1)
    record = take_step(body, tasks, batches, weighting, dtype=torch.float64)
    mixed = torch.cat([p.grad.reshape(-1) for p in body.parameters()])
    rows = task_gradients(body, tasks, batches)
    torch.testing.assert_close(mixed, record.weights.double() @ rows, atol=1e-6, rtol=1e-5)
    torch.manual_seed(1)
    torch.testing.assert_close(record.weights, again.weigh(rows @ rows.T), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("exponent", [-40, 20])
def test_weights_do_not_depend_on_the_scale_of_the_gradients(path: Path, exponent):
    """TorchJD has constants below which it treats gradients as zero."""
    found = []
    for factor in (1.0, 2.0**exponent):
        weighting = new(path)
        torch.manual_seed(2)
        rows = factor * torch.randn(3, 4)
        found.append(weighting.weigh(rows @ rows.T))
    assert torch.equal(*found)
    assert bool(found[0].abs().sum() > 0)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_what_a_weighting_remembers_is_in_its_state(path: Path):
    """Steps with a restored weighting are those of one that was never interrupted."""

    def steps(weighting, numbers):
        for number in numbers:
            torch.manual_seed(number)
            rows = torch.randn(3, 8)
            yield weighting.weigh(rows @ rows.T).clone()

    whole = list(steps(new(path), range(8)))
    weighting = new(path)
    list(steps(weighting, range(4)))
    for _ in range(2):  # the second time, it is saved without a step since it was loaded
        file = io.BytesIO()
        torch.save(weighting.state_dict(), file)
        file.seek(0)
        weighting = new(path)
        weighting.load_state_dict(torch.load(file, weights_only=True))
    for expected, found in zip(whole[4:], steps(weighting, range(4, 8)), strict=True):
        assert torch.equal(found, expected)


def test_products_with_second_batches_are_those_of_independent_gradients():
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    body, tasks, batches, _ = problem(0, 2, dtype=torch.float32)
    second = problem(7, 2, dtype=torch.float32)[2]
    weighting = Gramian(NAMES, "SDMGradWeighting", second_batch=True)
    seen, weigh = [], weighting.weigh
    weighting.weigh = lambda matrix: (seen.append(matrix), weigh(matrix))[1]
    record = take_step(body, tasks, batches, weighting, second_batches=second)
    mixed = torch.cat([p.grad.reshape(-1) for p in body.parameters()])
    heads = [p.grad.clone() for task in tasks for p in task.head.parameters()]
    rows, others = task_gradients(body, tasks, batches), task_gradients(body, tasks, second)
    torch.testing.assert_close(seen[0], rows @ others.T, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(mixed, record.weights @ rows, atol=1e-6, rtol=1e-5)
    take_step(body, tasks, batches, Uniform(NAMES))
    plain = [p.grad for task in tasks for p in task.head.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(heads, plain, strict=True))
