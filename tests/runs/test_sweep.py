"""A sweep's record: what is planned before the first job, what is left, what to run next."""

from __future__ import annotations

import json
import os
import pickle

import pytest
from omegaconf import OmegaConf

from tartan.runs import sweep
from tartan.runs.sweep import RECORDS, RunCallback, report_job


@pytest.fixture(autouse=True)
def _no_sweep(monkeypatch):
    monkeypatch.delenv(sweep.VARIABLE, raising=False)
    yield
    os.environ.pop(sweep.VARIABLE, None)


def config_of(tmp_path, hydra=()):
    """What Hydra gives the callback, as far as it looks."""
    settings = {
        "sweep": {"dir": str(tmp_path)},
        "job": {"chdir": False},
        "overrides": {"hydra": list(hydra)},
    }
    return OmegaConf.create({"hydra": settings})


def run_sweep(tmp_path, states):
    """A sweep whose jobs end so; returns whether it ends without an error."""
    callback, config = RunCallback(), config_of(tmp_path)
    callback.on_multirun_start(config)
    for number, state in enumerate(states):
        cause = "no such file" if state == "failed" else ""
        folder = tmp_path / f"run{number}"
        report_job(number, state, folder, f"tartan run seed={number}", cause)
        if "finished" in state:
            folder.mkdir()
            (folder / "result.json").write_text("{}")
    try:
        callback.on_multirun_end(config)
    except SystemExit as stop:
        return stop.code == 0
    return True


@pytest.mark.parametrize(
    ("states", "done", "words"),
    [
        (["finished", "finished before"], True, ["finished before"]),
        (["finished", "failed"], False, ["failed", "job 1: no such file", "  tartan run seed=1"]),
        (["finished", "runs elsewhere"], False, ["runs elsewhere"]),
        (["started"], False, ["died", "its process ended without a word"]),
    ],
)
def test_a_sweep_ends_with_a_table_a_record_and_an_exit_code(states, done, words, tmp_path, capsys):
    assert run_sweep(tmp_path, states) is done
    out = capsys.readouterr().out
    assert all(word in out for word in words)
    paths = sorted((tmp_path / RECORDS).glob("*/0*.json"))
    assert [json.loads(path.read_text())["state"] for path in paths] == states


def test_a_sweep_without_jobs_is_an_error(tmp_path, capsys):
    assert not run_sweep(tmp_path, [])
    assert "this sweep had no jobs" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["hydra.run.dir=there", ""])
def test_what_a_sweep_cannot_write_to_is_one_line(wrong, tmp_path, capsys):
    if not wrong:
        (tmp_path / RECORDS).touch()
    with pytest.raises(SystemExit, match="1"):
        RunCallback().on_multirun_start(config_of(tmp_path, hydra=[wrong]))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert "hydra.sweep.dir=FOLDER" in line


def test_a_job_reports_to_its_sweep_without_the_callers_environment(tmp_path, monkeypatch):
    callback, config = RunCallback(), config_of(tmp_path)
    callback.on_multirun_start(config)
    monkeypatch.delenv(sweep.VARIABLE)
    elsewhere = pickle.loads(pickle.dumps(callback))
    elsewhere.on_job_start(config, task_function=None)
    report_job(0, "finished", tmp_path / "run", "tartan run seed=0")
    assert len(list((tmp_path / RECORDS).glob("*/0*.json"))) == 1
