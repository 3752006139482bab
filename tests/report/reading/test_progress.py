"""A sweep in progress: done, running, failed, missing, and the time left."""

from __future__ import annotations

import json
import os

import pytest

from tartan.report.reading.progress import progress_of, seconds_left
from tartan.report.reading.search import Job, search
from tartan.report.reading.steps import last_step
from tartan.run_folder.sweep import ENDED, PLAN, RECORDS
from tests.holder import held
from tests.report.made_up_runs import config_of, read_all, result_of, write_run

PROGRAM = "python -m src.run "


def write_record(root, commands, jobs, name="one", ended=False):
    """A sweep's record; `jobs` are number, state, folder and cause."""
    folder = root / RECORDS / name
    folder.mkdir(parents=True)
    (folder / PLAN).write_text(json.dumps({"commands": [PROGRAM + c for c in commands]}))
    for number, state, job_folder, cause in jobs:
        entry = {
            "number": number,
            "state": state,
            "folder": f"/moved/since/{job_folder}",
            "command": PROGRAM + commands[number],
            "cause": cause,
            "at": 1000.0 + number,
        }
        (folder / f"{number:06d}.json").write_text(json.dumps(entry))
    if ended:
        (folder / ENDED).touch()
    return folder


def states(progress):
    return {job.command.removeprefix(PROGRAM): job.state for job in progress.jobs}


@pytest.fixture
def sweep(tmp_path):
    """Five planned jobs: finished, failed, running, died, not begun."""
    root = tmp_path / "runs"
    commands = [f"+experiment=x seed={seed}" for seed in range(5)]
    write_run(root / "x" / "seed=0", result_of("finetune", 0, 0.5), overrides=["seed=0"])
    config = config_of(result_of("finetune", 2, 0.5))
    running = write_run(root / "x" / "seed=2", None, config)
    write_run(root / "x" / "seed=3", None, config)
    jobs = [
        (0, "finished", "x/seed=0", ""),
        (1, "failed", "x/seed=1", "micro_batch_size must be at least 1"),
        (2, "started", "x/seed=2", ""),
        (3, "started", "x/seed=3", ""),
    ]
    write_record(root, commands, jobs)
    with held(running):
        yield root


def test_every_planned_job_has_its_state(sweep):
    progress = progress_of(search(sweep))
    assert [job.state for job in progress.jobs] == [
        "finished", "failed", "running", "stopped", "missing",
    ]  # fmt: skip
    assert progress.jobs[1].detail == "micro_batch_size must be at least 1"
    assert progress.jobs[4].command == f"{PROGRAM}+experiment=x seed=4"
    assert not progress.is_over
    assert progress.seconds_left is not None
    assert progress.counts == {
        "finished": 1, "running": 1, "failed": 1, "stopped": 1, "missing": 1,
    }  # fmt: skip


def test_runs_outside_a_sweep_are_listed_too(sweep):
    write_run(sweep / "alone", result_of("tapt", 0, 0.5), overrides=["method=tapt"])
    write_run(sweep / "early", None)
    found = states(progress_of(search(sweep)))
    assert found["method=tapt"] == "finished"
    assert [job.state for job in progress_of(search(sweep)).jobs][-1] == "not begun"


def test_a_sweep_is_recognised_below_whatever_folder_it_was_moved_to(sweep):
    below = sweep.parent
    progress = progress_of(search(below))
    folder = sweep.name
    states = {job.name: job.state for job in progress.jobs if job.name}
    assert states[f"{folder}/x/seed=0"] == "finished"
    assert states[f"{folder}/x/seed=2"] == "running"


def test_a_later_sweeps_word_counts(tmp_path):
    commands = ["seed=0", "seed=1"]
    write_record(tmp_path, commands, [(0, "failed", "a", "bad")], name="1", ended=True)
    write_run(tmp_path / "a", result_of("finetune", 0, 0.5))
    write_record(tmp_path, commands, [(0, "finished", "a", "")], name="2", ended=True)
    assert states(progress_of(search(tmp_path))) == {"seed=0": "finished", "seed=1": "missing"}


def test_a_later_sweep_that_did_not_reach_a_job_says_nothing_of_it(tmp_path):
    write_run(tmp_path / "x" / "seed=0", result_of("finetune", 0, 0.5), overrides=["seed=0"])
    commands = ["+experiment=x seed=0", "+experiment=x seed=1"]
    write_record(tmp_path, commands, [(0, "finished", "x/seed=0", "")], name="one")
    write_record(tmp_path, commands, [], name="two")
    progress = progress_of(search(tmp_path))
    assert states(progress) == {commands[0]: "finished", commands[1]: "missing"}
    assert len(progress.jobs) == 2


def test_a_job_that_failed_in_a_sweep_and_was_run_since_is_finished(tmp_path):
    write_record(tmp_path, ["seed=0"], [(0, "failed", "a", "bad")], ended=True)
    write_run(tmp_path / "a", result_of("finetune", 0, 0.5))
    progress = progress_of(search(tmp_path))
    assert progress.is_over
    assert progress.seconds_left is None


def test_a_run_that_was_removed_is_missing(tmp_path):
    write_record(tmp_path, ["seed=0"], [(0, "finished", "a", "")], ended=True)
    write_run(tmp_path / "b", result_of("finetune", 0, 0.5))
    assert states(progress_of(search(tmp_path)))["seed=0"] == "missing"


@pytest.mark.parametrize("content", ["{", '{"number": 0}', '{"commands": 5}', "[]"])
def test_a_record_that_is_none_is_listed_and_stops_nothing(content, tmp_path):
    write_run(tmp_path / "a", result_of("finetune", 0, 0.5))
    folder = write_record(tmp_path, ["seed=0"], [(0, "finished", "a", "")])
    name = PLAN if "commands" in content else "000000.json"
    (folder / name).write_text(content)
    progress = progress_of(search(tmp_path))
    assert [u.name for u in progress.unreadable] == [f"{RECORDS}/one"]
    assert progress.counts == {"finished": 1}


def write_two(root):
    """Finished runs that took 60 and 121 seconds."""
    for name, method in (("ft", "finetune"), ("tapt", "tapt")):
        write_run(root / name, result_of(method, 0, 0.5), overrides=[f"method={method}", "seed=0"])
    return read_all(root)


def test_the_time_left_is_that_of_finished_runs_of_the_same_command(tmp_path):
    runs = write_two(tmp_path)
    finetune, tapt = (run.result.seconds for run in runs)
    assert (finetune, tapt) == (60, 120)
    missing = Job("missing", "", PROGRAM + "method=tapt seed=1")
    assert seconds_left([missing], runs, now=0) == pytest.approx(tapt)
    unknown = Job("missing", "", PROGRAM + "method=dapt seed=1")
    assert seconds_left([unknown], runs, now=0) == pytest.approx((finetune + tapt) / 2)
    running = Job("running", "x", PROGRAM + "method=finetune seed=2", began=100.0)
    assert seconds_left([running], runs, now=110.0) == pytest.approx(finetune - 10)
    assert seconds_left([running, missing], runs, now=110.0) == pytest.approx(finetune - 10 + tapt)
    assert seconds_left([running] * 2 + [missing], runs, now=500.0) == pytest.approx(tapt / 2)


def test_without_finished_runs_nothing_is_promised(tmp_path):
    assert seconds_left([Job("missing", "", "x")], [], now=0) is None
    assert seconds_left([Job("finished", "", "x")], write_two(tmp_path), now=0) is None


def test_a_pipe_in_the_place_of_a_log_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "steps.csv")
    assert last_step(tmp_path) == ""
