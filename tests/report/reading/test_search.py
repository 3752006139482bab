"""What is found below a folder: all of it, whatever is wrong with some of it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tartan.errors import UserError
from tartan.report.reading.search import search
from tartan.report.reading.steps import read_steps
from tests.holder import held
from tests.report.made_up_runs import config_of, result_of, write_run, write_steps

GOOD = result_of("meta_tartan", 0, 0.5, auxiliaries=["dapt", "tapt"])


@pytest.fixture
def hold():
    """Let other processes hold run folders until the test is over."""
    with ExitStack() as holders:
        yield lambda folder: holders.enter_context(held(folder))


def test_every_kind_of_folder_is_told_from_the_others(tmp_path, hold):
    write_run(tmp_path / "a" / "finished", GOOD)
    damaged = write_run(tmp_path / "a" / "damaged", GOOD)
    (damaged / "result.json").write_text("{")
    stopped = write_run(tmp_path / "b" / "stopped", None, config_of(GOOD))
    write_steps(stopped, ["end_task", "dapt"], 0, steps=7)
    with (stopped / "steps.csv").open("a") as file:
        file.write("joint,8,end_")  # was being written
    running = write_run(tmp_path / "running", None, config_of(GOOD))
    hold(running)
    write_run(tmp_path / "early", None)
    bad = write_run(tmp_path / "bad", None, config_of(GOOD))
    (bad / "config.yaml").write_text("a: [")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note.txt").write_text("not a run")
    found = search(tmp_path)
    assert [run.name for run in found.runs] == ["a/finished"]
    assert [u.name for u in found.unreadable] == ["a/damaged", "bad"]
    states = {run.name: (run.state, run.detail) for run in found.unfinished}
    assert states == {
        "b/stopped": ("stopped", "joint, step 7"),
        "running": ("running", ""),
        "early": ("not begun", ""),
    }


def test_runs_inside_a_run_are_its_own_business_and_hidden_folders_are_left_out(tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    write_run(folder / "checkpoints" / "other", GOOD)
    write_run(tmp_path / ".hidden" / "run", GOOD)
    assert [run.name for run in search(tmp_path).runs] == ["run"]


def test_a_run_folder_itself_can_be_reported_on(tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    assert [run.name for run in search(folder).runs] == ["."]


def test_links_are_not_followed(tmp_path):
    write_run(tmp_path / "elsewhere" / "run", GOOD)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere")
    assert search(tmp_path / "runs").runs == []


def test_no_folder_is_one_line(tmp_path):
    with pytest.raises(UserError, match="nothing is not a folder of runs"):
        search(tmp_path / "nothing")


@pytest.mark.parametrize(
    "content",
    ["", "a,b\n1,2\n", "stage,step,task,weight\njoint,x,end_task,1\n", "\0\0\n"],
    ids=["empty", "columns", "types", "bytes"],
)
def test_a_step_log_that_is_none_is_one_line(content, tmp_path):
    (tmp_path / "steps.csv").write_text(content)
    with pytest.raises(UserError, match=r"^steps\.csv") as caught:
        read_steps(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_step_log_is_read_up_to_its_last_whole_line(tmp_path):
    write_steps(tmp_path, ["end_task", "dapt"], 0, steps=3)
    with (tmp_path / "steps.csv").open("a") as file:
        file.write("joint,4,end_task,0.")
    table = read_steps(tmp_path)
    assert list(table["step"]) == [1, 1, 2, 2, 3, 3]
    assert set(table["task"]) == {"end_task", "dapt"}
