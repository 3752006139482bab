"""TorchJD's weightings, through one adapter."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn

from tartan.core.body import BodyGradient, SharedBody, Summed, gramian
from tartan.core.task import Batch, MicroBatch, Task
from tartan.core.weighting.fixed import Uniform
from tartan.core.weighting.gramian import Gramian
from tests.conftest import ROOT
from tests.core.steps import take_step

CONFIGS = [
    path
    for path in sorted((ROOT / "conf" / "weighting").glob("*.yaml"))
    if str(OmegaConf.load(path)._target_).endswith("Gramian")
]


class Regression:
    """The simplest objective that `tartan.core.task.Objective` describes."""

    def features(self, body, inputs):
        return body(inputs["x"])

    def targets(self, inputs):
        return inputs["y"]

    def losses(self, body, head, features, targets):
        return (head(features).squeeze(1) - targets).square()


def problem(tasks):
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
    made = [Task(f"t{i}", Regression(), nn.Linear(6, 1)) for i in range(tasks)]
    batches = {
        task.name: Batch([MicroBatch({"x": torch.randn(8, 4), "y": torch.randn(8)}, 8, 8)], 8)
        for task in made
    }
    return body, made, batches


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


def test_the_gramian_holds_all_inner_products():
    gradients = [[torch.randn(3, 2), torch.randn(5)] for _ in range(4)]
    gradients[1][0] = None
    vectors = torch.stack(
        [
            torch.cat([(torch.zeros(3, 2) if g[0] is None else g[0]).reshape(-1), g[1]])
            for g in gradients
        ]
    )
    whole = SharedBody(nn.Linear(1, 1))
    made = [
        BodyGradient(whole, Task("t", None, nn.Identity()), lambda g=g: Summed(g, torch.zeros(())))
        for g in gradients
    ]
    torch.testing.assert_close(gramian(made), vectors @ vectors.T)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_mixed_gradient_is_torchjds_combination(path: Path):
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    config = OmegaConf.load(path)
    try:
        weighting = Gramian(["t0", "t1", "t2"], config.torchjd, dict(config.options))
    except ImportError as error:
        pytest.skip(str(error))
    body, tasks, batches = problem(3)
    torch.manual_seed(1)
    record = take_step(body, tasks, batches, weighting, second_batches=batches)
    mixed = torch.cat([p.grad.reshape(-1) for p in body.parameters()])
    rows = task_gradients(body, tasks, batches)
    torch.testing.assert_close(mixed, record.weights @ rows, atol=1e-6, rtol=1e-5)
    again = Gramian(["t0", "t1", "t2"], config.torchjd, dict(config.options))
    torch.manual_seed(1)
    torch.testing.assert_close(record.weights, again.inner(rows @ rows.T), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("exponent", [-40, -12, 20])
def test_weights_do_not_depend_on_the_scale_of_the_gradients(path: Path, exponent):
    """TorchJD has constants below which it treats gradients as zero."""
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    config = OmegaConf.load(path)
    found = []
    for factor in (1.0, 2.0**exponent):
        try:
            weighting = Gramian(["a", "b", "c"], config.torchjd, dict(config.options))
        except ImportError as error:
            pytest.skip(str(error))
        torch.manual_seed(2)
        rows = factor * torch.randn(3, 4)
        found.append(weighting.weigh(rows @ rows.T))
    assert torch.equal(*found)
    assert bool(found[0].abs().sum() > 0)


def test_mgda_finds_the_shortest_vector_of_the_hull():
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    body, tasks, batches = problem(2)
    weighting = Gramian(["t0", "t1"], "MGDAWeighting", {})
    record = take_step(body, tasks, batches, weighting)
    rows = task_gradients(body, tasks, batches)
    shares = torch.linspace(0, 1, 1001)
    hull = shares[:, None] * rows[0] + (1 - shares[:, None]) * rows[1]
    found = (record.weights @ rows).norm()
    assert float(found) == pytest.approx(float(hull.norm(dim=1).min()), rel=1e-2)


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchjd.aggregation", None)
    with pytest.raises(ImportError, match=r"weightings"):
        Gramian(["a", "b"], "UPGradWeighting")


@pytest.mark.parametrize("name", ["UPGrad", "Mean", "MGDA"])
def test_an_aggregator_is_refused_with_the_weightings_name(name):
    pytest.importorskip("torchjd")
    with pytest.raises(ValueError, match=f"{name}Weighting may"):
        Gramian(["a", "b"], torchjd=name)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_what_a_weighting_remembers_is_in_its_state(path: Path):
    """Steps with a restored weighting are those of one that was never interrupted."""
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    config = OmegaConf.load(path)

    def new():
        try:
            return Gramian(["a", "b", "c"], config.torchjd, dict(config.options))
        except ImportError as error:
            pytest.skip(str(error))

    def steps(weighting, numbers):
        found = []
        for number in numbers:
            torch.manual_seed(number)
            rows = torch.randn(3, 8)
            found.append(weighting.weigh(rows @ rows.T).clone())
        return found

    whole = steps(new(), range(8))
    first = new()
    steps(first, range(4))
    for _ in range(2):  # the second time, it is saved without a step since it was loaded
        file = io.BytesIO()
        torch.save(first.state_dict(), file)
        file.seek(0)
        second = first = new()
        second.load_state_dict(torch.load(file, weights_only=True))
    for expected, found in zip(whole[4:], steps(second, range(4, 8)), strict=True):
        assert torch.equal(found, expected)


def test_products_with_second_batches_are_those_of_independent_gradients():
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    body, tasks, batches = problem(3)
    torch.manual_seed(7)
    second = {
        task.name: Batch([MicroBatch({"x": torch.randn(8, 4), "y": torch.randn(8)}, 8, 8)], 8)
        for task in tasks
    }
    weighting = Gramian(["t0", "t1", "t2"], "SDMGradWeighting", second_batch=True)
    seen = []
    weigh = weighting.weigh
    weighting.weigh = lambda matrix: (seen.append(matrix), weigh(matrix))[1]
    record = take_step(body, tasks, batches, weighting, second_batches=second)
    mixed = torch.cat([p.grad.reshape(-1) for p in body.parameters()])
    heads = [p.grad.clone() for task in tasks for p in task.head.parameters()]
    rows, others = task_gradients(body, tasks, batches), task_gradients(body, tasks, second)
    torch.testing.assert_close(seen[0], rows @ others.T, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(mixed, record.weights @ rows, atol=1e-6, rtol=1e-5)
    for task in tasks:
        task.head.zero_grad()
    take_step(body, tasks, batches, Uniform(["t0"] * 3))
    plain = [p.grad for task in tasks for p in task.head.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(heads, plain, strict=True))
