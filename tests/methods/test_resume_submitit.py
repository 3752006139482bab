"""Under submitit, which puts preempted and timed-out jobs back in their queue by its own signal."""

from __future__ import annotations

import signal

import pytest

import tartan.runs.run
from tartan.methods.checkpoint import points
from tartan.methods.module import TaskMixing
from tests.in_process import config_of, toy

pytestmark = pytest.mark.slow


class Requeued(SystemExit):
    """What submitit's handler raises once the job is in the queue again."""


def test_preemption_writes_a_point_before_the_job_goes_back_to_its_queue(
    monkeypatch, data_dir, cache_dir, tmp_path
):
    """SLURM's SIGTERM announces it; submitit's own signal comes next, in the same step here."""
    requeued, step = [], TaskMixing.training_step

    def checkpoint_and_try_requeue(signum, frame):
        requeued.append(signum)
        raise Requeued(-1)

    def signalled(self, batch, index):
        if batch.step == 2 and not requeued:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGUSR2)
        return step(self, batch, index)

    def run(folder):
        config = config_of(toy(data_dir, cache_dir, "finetune"))
        return tartan.runs.run.run_experiment(config, folder).as_json()

    undisturbed = run(tmp_path / "undisturbed")
    monkeypatch.setattr(TaskMixing, "training_step", signalled)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    monkeypatch.delenv("SUBMITIT_PREEMPT_SIGNAL", raising=False)
    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda signum, frame: None),
        signal.SIGUSR2: signal.signal(signal.SIGUSR2, checkpoint_and_try_requeue),
    }
    try:
        with pytest.raises(Requeued):
            run(tmp_path / "run")
        written = points(tmp_path / "run" / "checkpoints" / "finetune" / "resume")
        assert [int(point.stem) for point in written] == [3]
        result = run(tmp_path / "run")
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    assert requeued == [signal.SIGUSR2]
    assert result["dev"] == undisturbed["dev"]
    assert result["stages"][0]["evaluations"] == undisturbed["stages"][0]["evaluations"]
