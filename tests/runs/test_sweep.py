"""A sweep's record: what is planned before the first job, what is left, what to run next."""

from __future__ import annotations

import json
import os
import pickle
import shlex

import pytest
from omegaconf import OmegaConf

from tartan.runs import sweep
from tartan.runs.result import write_result
from tartan.runs.sweep import (
    RECORDS,
    RUN_NEXT,
    RunCallback,
    report_job,
    write_run_next,
)
from tests.runs.small_result import small_result


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


def job(tmp_path, number, score, *overrides, metric="macro_f1"):
    folder = tmp_path / str(number)
    folder.mkdir()
    if score is not None:
        scores = {"examples": 4, "metrics": {metric: score, "loss": 9.0}}
        splits = {"whole": scores, "unseen": scores}
        write_result(small_result(dev=splits, metric=metric), folder)
    command = shlex.join(["tartan", "run", *overrides, "+search=paper"])
    return {"folder": str(folder), "command": command}


def command_in(tmp_path):
    return shlex.split((tmp_path / RUN_NEXT).read_text().splitlines()[1])[3:]


def test_a_search_ends_with_the_best_on_dev_without_what_made_it_a_search(tmp_path, capsys):
    write_run_next([job(tmp_path, "a", None, "lr=3")], tmp_path)
    assert not (tmp_path / RUN_NEXT).exists()
    jobs = [
        job(tmp_path, 0, 0.5, "lr=1", "evaluate_test=false", "seed=3"),
        job(tmp_path, 1, 0.7, "--config-dir=/my conf", "lr=2", "x={a: 1}", "seed=3"),
        job(tmp_path, 2, None, "lr=3"),
    ]
    write_run_next(jobs, tmp_path)
    assert command_in(tmp_path) == ["--config-dir=/my conf", "lr=2", "x={a: 1}", "seed=0,1,2"]
    assert "best on dev: 0.7000" in capsys.readouterr().out


def test_seeds_count_by_their_mean_and_of_perplexities_the_lowest_is_chosen(tmp_path):
    scores = {"lr=1": (0.9, 0.1), "lr=2": (0.6, 0.6)}
    jobs = [
        job(tmp_path, f"{lr}{seed}", score, lr, f"seed={seed}")
        for lr, pair in scores.items()
        for seed, score in enumerate(pair)
    ]
    write_run_next(jobs, tmp_path)
    assert command_in(tmp_path) == ["lr=2", "seed=0,1,2"]
    jobs = [job(tmp_path, v, v, f"lr={v}", metric="perplexity") for v in (30.5, 12.5)]
    write_run_next(jobs, tmp_path)
    assert command_in(tmp_path) == ["lr=12.5", "seed=0,1,2"]
