"""A sweep's record: what is planned before the first job, and what is left at the end."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import shlex
import sys

import pytest
from omegaconf import OmegaConf

from tartan.runs import sweep
from tartan.runs.name import command_of, places_of
from tartan.runs.result import write_result
from tartan.runs.sweep import (
    ENDED,
    PLAN,
    RECORDS,
    RunCallback,
    planned_jobs,
    report_job,
)
from tests.runs.small_result import small_result

BASIC = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"


def config_of(tmp_path, *overrides, target=BASIC, params=None):
    """What Hydra gives the callback, as far as it looks."""
    sweeper = {"_target_": target, "params": params}
    return OmegaConf.create(
        {
            "hydra": {
                "sweep": {"dir": str(tmp_path)},
                "job": {"chdir": False},
                "sweeper": sweeper,
                "overrides": {"task": list(overrides)},
            }
        }
    )


def planned_commands(config):
    jobs, places = planned_jobs(config), places_of(config.hydra)
    return None if jobs is None else [command_of(job, places) for job in jobs]


@pytest.fixture(autouse=True)
def _no_sweep(monkeypatch):
    monkeypatch.delenv(sweep.VARIABLE, raising=False)
    yield
    os.environ.pop(sweep.VARIABLE, None)


def run_sweep(tmp_path, states, *overrides):
    report = RunCallback()
    config = config_of(tmp_path, *overrides)
    report.on_multirun_start(config)
    for number, state in enumerate(states):
        report_job(number, state, tmp_path / f"run{number}", f"tartan run seed={number}")
    report.on_multirun_end(config)


def test_the_plan_lists_every_jobs_command_in_order(tmp_path):
    commands = planned_commands(config_of(tmp_path, "+experiment=a,b", "x='a, b'", "seed=0,1"))
    assert [shlex.split(command)[2:] for command in commands] == [
        [f"+experiment={name}", "x='a, b'", f"seed={seed}"] for name in "ab" for seed in (0, 1)
    ]


def test_what_the_config_sweeps_over_is_planned_too(tmp_path):
    commands = planned_commands(config_of(tmp_path, "lr=1", params={"seed": "0,1"}))
    assert [command.split()[2:] for command in commands] == [["seed=0", "lr=1"], ["seed=1", "lr=1"]]


def test_a_sweeper_that_decides_while_it_runs_has_no_plan(tmp_path):
    assert planned_commands(config_of(tmp_path, "seed=0,1", target="optuna.Sweeper")) is None


def test_a_sweep_has_no_folder_of_a_run(tmp_path, capsys):
    config = config_of(tmp_path, "seed=0")
    config.hydra.overrides.hydra = ["hydra.mode=MULTIRUN", "hydra.run.dir=there"]
    with pytest.raises(SystemExit, match="1"):
        RunCallback().on_multirun_start(config)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: with -m, hydra.run.dir names no folder; hydra.sweep.dir=")


def test_a_sweep_without_jobs_is_an_error(tmp_path, capsys):
    with pytest.raises(SystemExit, match="1"):
        run_sweep(tmp_path, [], "+experiment=glob(zzz*)")
    assert "this sweep had no jobs" in capsys.readouterr().err


def test_the_record_is_kept_and_replaces_that_of_the_same_sweep(tmp_path, capsys, monkeypatch):
    moments = itertools.count()
    monkeypatch.setattr(sweep.time, "strftime", lambda _: str(next(moments)))
    for _ in range(2):
        run_sweep(tmp_path, ["finished", "known"], "seed=0,1")
    run_sweep(tmp_path, ["finished"], "seed=0")
    records = sorted((tmp_path / RECORDS).iterdir())
    plans = [len(json.loads((folder / PLAN).read_text())["commands"]) for folder in records]
    assert plans == [2, 1]
    assert all((folder / ENDED).exists() for folder in records)
    assert "finished before" in capsys.readouterr().out


def test_the_record_of_a_sweep_that_still_runs_is_left_alone(tmp_path, capsys):
    running = tmp_path / RECORDS / "running"
    running.mkdir(parents=True)
    plan = {"commands": planned_commands(config_of(tmp_path, "seed=0,1"))}
    (running / PLAN).write_text(json.dumps(plan))
    run_sweep(tmp_path, ["finished", "finished"], "seed=0,1")
    assert running.is_dir()


def test_a_failed_job_is_in_the_record_with_its_cause(tmp_path, capsys):
    report = RunCallback()
    config = config_of(tmp_path, "seed=0")
    report.on_multirun_start(config)
    report_job(0, "failed", tmp_path / "run", "tartan run seed=0", "no such file")
    with pytest.raises(SystemExit):
        report.on_multirun_end(config)
    (path,) = (tmp_path / RECORDS).glob("*/0*.json")
    job = json.loads(path.read_text())
    assert (job["state"], job["cause"]) == ("failed", "no such file")
    assert job["command"] == "tartan run seed=0"
    assert job["at"] > 1.7e9
    assert not list((tmp_path / RECORDS).glob("*.part"))


def test_a_sweep_that_is_stopped_prints_its_table_too(tmp_path, capsys):
    RunCallback().on_multirun_start(config_of(tmp_path, "seed=0,1"))
    report_job(0, "stopped", tmp_path / "run", "tartan run seed=0", "by a signal")
    with pytest.raises(SystemExit), sweep.report_interrupted_sweep():
        sys.exit(130)
    told = capsys.readouterr()
    assert "stopped" in told.out
    assert "tartan run seed=0" in told.out
    assert "the same command runs what is missing" in told.err
    assert not list((tmp_path / RECORDS).glob(f"*/{ENDED}"))
    with sweep.report_interrupted_sweep():
        pass
    assert capsys.readouterr().out == ""


def test_a_job_reports_to_its_sweep_without_the_callers_environment(tmp_path, monkeypatch):
    report = RunCallback()
    config = config_of(tmp_path, "seed=0")
    report.on_multirun_start(config)
    monkeypatch.delenv(sweep.VARIABLE)
    elsewhere = pickle.loads(pickle.dumps(report))
    elsewhere.on_job_start(config, task_function=None)
    report_job(0, "finished", tmp_path / "run", "tartan run seed=0")
    assert len(list((tmp_path / RECORDS).glob("*/0*.json"))) == 1


def test_a_single_run_reports_nowhere(tmp_path):
    RunCallback().on_job_start(config_of(tmp_path), task_function=None)
    assert sweep.VARIABLE not in os.environ


def test_a_job_that_another_process_runs_is_neither_done_nor_failed(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run_sweep(tmp_path, ["finished", "elsewhere"], "seed=0,1")
    assert "runs elsewhere" in capsys.readouterr().out


def test_a_job_that_another_process_has_finished_by_the_end_is_done(tmp_path, capsys):
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1" / "result.json").write_text("{}")
    run_sweep(tmp_path, ["finished", "elsewhere"], "seed=0,1")
    assert "finished before" in capsys.readouterr().out


def test_a_jobs_command_leads_to_where_its_sweep_put_it(tmp_path):
    config = config_of(tmp_path, "seed=0,1")
    config.hydra.overrides.hydra = ["hydra.sweep.dir=my runs", "hydra.mode=MULTIRUN"]
    commands = [shlex.split(command)[2:] for command in planned_commands(config)]
    assert commands == [[f"seed={seed}", "hydra.sweep.dir=my runs"] for seed in (0, 1)]


def test_a_jobs_command_finds_the_configs_of_its_sweep(tmp_path):
    config = config_of(tmp_path, "seed=0,1")
    source = {"provider": "command-line", "path": "/my_conf", "schema": "file"}
    config.hydra.runtime = {"config_sources": [source]}
    commands = [shlex.split(command)[2:] for command in planned_commands(config)]
    assert commands == [["--config-dir=/my_conf", f"seed={seed}"] for seed in (0, 1)]


def test_searches_of_one_folder_leave_each_other_their_commands(tmp_path, capsys):
    (tmp_path / "run0").mkdir()
    scores = {"examples": 4, "metrics": {"macro_f1": 0.5, "loss": 9.0}}
    write_result(small_result(dev={"whole": scores, "unseen": scores}), tmp_path / "run0")
    for own, name in [
        (["hydra.sweeper.n_trials=2"], "run_next.txt"),
        (["hydra.sweeper.params.lr=1,2"], "run_next-2.txt"),
        (["hydra.sweeper.n_trials=4", "hydra.mode=MULTIRUN"], "run_next.txt"),
    ]:
        config = config_of(tmp_path, "+search=paper", "logger=none")
        config.evaluate_test = False
        config.hydra.overrides.hydra = own
        report = RunCallback()
        report.on_multirun_start(config)
        report_job(0, "finished", tmp_path / "run0", "tartan run seed=0")
        report.on_multirun_end(config)
        assert f"({tmp_path}/{name})" in capsys.readouterr().out
    (found_by,) = [
        line for line in (tmp_path / name).read_text().splitlines() if "found by" in line
    ]
    assert found_by == "# found by: tartan run -m +search=paper"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / RECORDS).touch()
    with pytest.raises(SystemExit):
        RunCallback().on_multirun_start(config_of(tmp_path, "seed=0,1"))
    errors = capsys.readouterr().err
    assert errors.startswith(f"error: cannot write {tmp_path / RECORDS}")
    assert errors.endswith("hydra.sweep.dir=FOLDER\n")
