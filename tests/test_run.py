"""The command line as a user meets it."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

from tartan.runs.command import exit_code
from tests.conftest import ROOT
from tests.in_process import config_of, toy

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Tiny matrices: where cores are shared, a second thread waits most of the time."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def finetune_options(data_dir, cache_dir):
    return toy(data_dir, cache_dir, "finetune")


def error_line(finished) -> str:
    """The one line that says what is wrong."""
    assert finished.returncode != 0
    assert "Traceback" not in finished.stderr
    lines = [line for line in finished.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error:")]
    assert len(errors) == 1, finished.stderr
    assert lines == errors, finished.stderr
    return errors[0]


def test_help_and_configs_answer_at_once(run_cli, tmp_path):
    helped = run_cli("--help", timeout=30)
    assert helped.returncode == 0
    for words in ("+experiment=acl_arc_meta", "method:", "task:", "weighting:", "experiment:"):
        assert words in helped.stdout
    shown = run_cli("--cfg", "job", "+experiment=acl_arc_meta", timeout=30)
    assert shown.returncode == 0
    assert "tartan.core.weighting.meta.Meta" in shown.stdout
    assert not (tmp_path / "runs").exists()


def test_a_run_leaves_everything_in_its_folder_and_is_not_run_twice(
    run_cli, data_dir, cache_dir, tmp_path, monkeypatch
):
    secret = "s3cret-of-the-environment"
    for name in ("WANDB_API_KEY", "HF_TOKEN", "MY_PASSWORD"):
        monkeypatch.setenv(name, secret)
    meta_options = toy(data_dir, cache_dir, "meta_tartan")
    first = run_cli(*meta_options)
    assert first.returncode == 0, first.stderr
    (folder,) = (tmp_path / "runs" / "toy_meta_tartan").iterdir()
    for name in (
        "config.yaml",
        "result.json",
        "steps.csv",
        "task_weights.png",
        "checkpoints/joint/best.ckpt",
        "classifier/model.safetensors",
        "logs/joint/metrics.csv",
    ):
        assert (folder / name).is_file(), name
    for path in (tmp_path / "runs").rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path
    result = json.loads((folder / "result.json").read_text())
    value = result["test"]["whole"]["metrics"]["macro_f1"]
    assert f"{value:.4f}" in first.stdout
    assert "meta_tartan on toy, tiny, seed 0" in first.stdout
    assert "result.json" in first.stdout

    before = (folder / "result.json").stat().st_mtime_ns
    started = time.perf_counter()
    second = run_cli(*meta_options)
    seconds = time.perf_counter() - started
    assert second.returncode == 0, second.stderr
    assert "holds this run, finished" in second.stdout
    assert f"{value:.4f}" in second.stdout
    assert (folder / "result.json").stat().st_mtime_ns == before
    assert seconds < 10  # nothing heavy is imported for it
    assert first.stderr.strip() == ""  # last: the rest matters more than a library's notices


def test_a_sweep_makes_a_folder_a_job_and_a_failing_job_does_not_stop_the_others(
    run_cli, finetune_options, tmp_path
):
    sweep = ["-m", *finetune_options, "seed=0,1", "micro_batch_size=0,8"]
    swept = run_cli(*sweep)
    assert swept.returncode == 1
    errors = [line for line in swept.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 2
    assert all("micro_batch_size" in error for error in errors)
    assert "Traceback" not in swept.stderr
    folders = [path.parent for path in (tmp_path / "runs").rglob("result.json")]
    found = {json.loads((folder / "result.json").read_text())["seed"] for folder in folders}
    assert found == {0, 1}
    assert len(folders) == 2
    assert {folder.parent for folder in folders} == {tmp_path / "runs" / "toy_finetune"}

    table = swept.stdout[swept.stdout.index("sweep") :]
    states = re.findall(r"(\d) │ (\w[\w ,]*\w) +│", table)
    assert states == [("0", "failed"), ("1", "finished"), ("2", "failed"), ("3", "finished")]
    assert "job 0: micro_batch_size: " in table
    (command, _) = (line for line in table.splitlines() if line.startswith("  tartan run"))
    assert "micro_batch_size=0" in command
    alone = run_cli(*shlex.split(command)[2:])
    assert "micro_batch_size" in error_line(alone)

    interrupted, finished = folders
    (interrupted / "result.json").unlink()
    before = (finished / "result.json").stat().st_mtime_ns
    again = run_cli(*sweep)
    assert again.returncode == 1
    states = re.findall(r"\d │ (\w[\w ,]*\w) +│", again.stdout[again.stdout.index("sweep") :])
    assert sorted(states) == ["failed", "failed", "finished", "finished before"]
    assert (finished / "result.json").stat().st_mtime_ns == before
    assert (interrupted / "result.json").is_file()


@pytest.mark.longest
def test_sigterm_ends_a_run_after_its_step_and_the_same_command_goes_on(finetune_options, tmp_path):
    command = [
        sys.executable, "-m", "src.run", *finetune_options, "max_steps=2000",
        "method.stages.finetune.evaluate_every=5", "method.stages.finetune.patience=null",
        "method.stages.finetune.max_epochs=null", "method.stages.finetune.max_steps=2000",
        f"hydra.run.dir={tmp_path}/run",
    ]  # fmt: skip
    job = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    for _ in range(1000):
        if (tmp_path / "run" / "steps.csv").exists():
            break
        time.sleep(0.1)
    job.send_signal(signal.SIGTERM)
    _, errors = job.communicate(timeout=60)
    assert job.returncode == 143, errors
    assert f"run the same command to continue in {tmp_path}/run" in errors
    assert "Traceback" not in errors
    points = list((tmp_path / "run" / "checkpoints" / "finetune" / "resume").glob("*.ckpt"))
    assert len(points) == 1
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_during_the_test_evaluation_is_no_success(
    signum, code, finetune_options, tmp_path, monkeypatch, request
):
    """Lightning's own handlers are in charge there, and leave with 0 and 1."""
    from tartan.methods.module import TaskMixing
    from tartan.runs.run import run_experiment

    if signum == signal.SIGINT:  # which a shell's background job ignores, and so its tests
        before = signal.signal(signum, signal.default_int_handler)
        request.addfinalizer(lambda: signal.signal(signum, before))
    test_step = TaskMixing.test_step

    def signalled(self, *args):
        signal.raise_signal(signum)
        return test_step(self, *args)

    monkeypatch.setattr(TaskMixing, "test_step", signalled)
    with pytest.raises(SystemExit) as stop:
        run_experiment(config_of([*finetune_options, "evaluation_batch_size=10"]), tmp_path / "run")
    assert stop.value.code != code  # or nothing of ours would be needed
    assert exit_code(stop.value) == code
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize("data", ["here", "nowhere"])
def test_without_a_network_the_papers_experiment_says_what_works_without(
    run_cli, tmp_path, cache_dir, monkeypatch, data, finetune_options
):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    options = ["+experiment=acl_arc_meta", f"cache_dir={tmp_path}/cache"]
    if data == "here":
        options += [o for o in finetune_options if o.startswith("task")] + ["auxiliary=tapt"]
    started = time.perf_counter()
    message = error_line(run_cli(*options))
    # the libraries' own patience is minutes; most of this is imports, on a machine that is slow
    assert time.perf_counter() - started < 60
    assert ("FacebookAI/roberta-base" if data == "here" else "train.jsonl") in message
    for way_out in ("encoder=minilm", "task=docstrings", "data_dir=FOLDER"):
        assert way_out in message
