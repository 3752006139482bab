"""Sweeps in other processes: joblib's, and submitit's local executor, which pickles as SLURM's."""

from __future__ import annotations

import json
import os
import re

import pytest

from tartan.report.runs import find_runs
from tartan.runs.folder import LOCK
from tartan.runs.sweep import RECORDS
from tests import slurm

pytestmark = [pytest.mark.slow, pytest.mark.longest]

DIGITS = ["+experiment=digits_meta", "max_steps=2", "trainer.enable_progress_bar=false"]


def states_in(table):
    return dict(re.findall(r"(\d) │ (\w[\w ,]*\w) +│", table[table.index("sweep") :]))


@pytest.mark.parametrize("launcher", ["parallel", "submitit_local"])
def test_a_sweep_in_other_processes_is_a_sweep_like_any_other(launcher, run_cli, tmp_path):
    """One job fails: the others run, the exit code and the record say so, and it goes on."""
    options = ["-m", f"hydra/launcher={launcher}", *DIGITS, "micro_batch_size=512,0", "seed=0"]
    swept = run_cli(*options, fresh=True)
    assert swept.returncode == 1, swept.stderr
    assert states_in(swept.stdout) == {"0": "finished", "1": "failed"}
    assert "job 1: micro_batch_size: " in swept.stdout
    runs = tmp_path / "runs"
    (result,) = runs.rglob("result.json")
    assert json.loads(result.read_text())["seed"] == 0
    assert (result.parent / LOCK).is_file()
    assert len(find_runs(runs).runs) == 1
    (record,) = (runs / RECORDS).iterdir()
    assert len(list(record.iterdir())) == 2


def test_on_a_cluster_a_job_that_is_put_back_in_its_queue_is_a_job_of_the_sweep(
    run_cli, tmp_path, monkeypatch
):
    """Preempted before its first step; tests/methods/test_resume.py is about later."""
    notes = slurm.install(tmp_path / "cluster")
    monkeypatch.setenv("PATH", f"{tmp_path}/cluster/bin:{os.environ['PATH']}")
    (tmp_path / "preempted.py").write_text(
        "import pathlib, signal\n"
        "from tartan.vision.wide_resnet import WideResNetSource\n\n\n"
        "def Preempted(**options):\n"
        "    mark = pathlib.Path('was_preempted')\n"
        "    if not mark.exists():\n"
        "        mark.touch()\n"
        "        signal.raise_signal(signal.SIGUSR2)\n"
        "    return WideResNetSource(**options)\n"
    )
    encoders = "encoder._target_=preempted.Preempted,tartan.vision.wide_resnet.WideResNetSource"
    swept = run_cli("-m", "hydra/launcher=slurm", *DIGITS, encoders, fresh=True)
    assert swept.returncode == 0, swept.stderr
    assert states_in(swept.stdout) == {"0": "finished", "1": "finished"}
    assert (notes / "scontrol").read_text().split() == ["requeue", f"{slurm.JOB}_0"]
    submitted = (notes / "sbatch").read_text()
    for line in ("--gpus-per-node=1", "--signal=USR2@300", "--array=0-1%2", "--time=240"):
        assert f"#SBATCH {line}" in submitted
    assert len(find_runs(tmp_path / "runs").runs) == 2
