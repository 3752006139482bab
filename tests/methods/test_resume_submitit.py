"""Under submitit, which puts preempted and timed-out jobs back in their queue by its own signal."""

from __future__ import annotations

import signal

import pytest

import tartan.runs.run
from tartan.methods.module import TaskMixing
from tartan.methods.resume_points import points
from tests.in_process import config_of, toy

pytestmark = pytest.mark.slow


class Requeued(SystemExit):
    """What submitit's handler raises once the job is in the queue again."""


@pytest.fixture
def submitit(monkeypatch):
    """Its variable and its handlers, as its job has them before our code is called."""
    requeued = []

    def checkpoint_and_try_requeue(signum, frame):
        requeued.append(signum)
        raise Requeued(-1)

    before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGUSR2)}
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    monkeypatch.delenv("SUBMITIT_PREEMPT_SIGNAL", raising=False)
    signal.signal(signal.SIGTERM, lambda signum, frame: None)
    signal.signal(signal.SIGUSR2, checkpoint_and_try_requeue)
    yield requeued
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.fixture
def signals(monkeypatch):
    """Signals that are raised in a step, by the number of steps taken in this test."""
    step, seen, planned = TaskMixing.training_step, [0], {}

    def signalled(self, *args):
        seen[0] += 1
        for signum in planned.get(seen[0], ()):
            signal.raise_signal(signum)
        return step(self, *args)

    monkeypatch.setattr(TaskMixing, "training_step", signalled)
    return planned


def run(data_dir, cache_dir, folder, *options):
    options = ("method.stages.finetune.evaluate_every=6", *options)
    config = config_of(toy(data_dir, cache_dir, "finetune", *options))
    return tartan.runs.run.run_experiment(config, folder).as_json()


def steps_of(folder):
    found = points(folder / "checkpoints" / "finetune" / "resume")
    return [int(point.stem) for point in found]


def test_preemption_writes_a_point_before_the_job_goes_back_to_its_queue(
    submitit, signals, data_dir, cache_dir, tmp_path
):
    """SLURM's SIGTERM announces it; submitit's own signal comes next, in the same step here."""
    undisturbed = run(data_dir, cache_dir, tmp_path / "undisturbed")
    signals |= {6 + 3: (signal.SIGTERM, signal.SIGUSR2)}
    with pytest.raises(Requeued):
        run(data_dir, cache_dir, tmp_path / "run")
    assert submitit == [signal.SIGUSR2]
    assert steps_of(tmp_path / "run") == [3]
    result = run(data_dir, cache_dir, tmp_path / "run")
    assert result["dev"] == undisturbed["dev"]
    assert result["stages"][0]["evaluations"] == undisturbed["stages"][0]["evaluations"]


def test_sigterm_alone_writes_a_point_and_the_run_goes_on(
    submitit, signals, data_dir, cache_dir, tmp_path
):
    signals |= {2: (signal.SIGTERM,), 4: (signal.SIGUSR2,)}
    with pytest.raises(Requeued):
        run(data_dir, cache_dir, tmp_path)
    assert steps_of(tmp_path) == [2, 4]
