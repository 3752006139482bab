"""What is left of every step: task weights as CSV, losses for the loggers."""

from __future__ import annotations

import zlib

import pandas as pd
import pytest
import yaml

import tartan.methods.step_log
from tartan.errors import UserError
from tartan.methods.step_log import COLUMNS, StepLog, _unpacked, put_back, rows_before
from tests.in_process import recorded_run, toy

pytestmark = pytest.mark.slow

TASKS = ["end_task", "dapt", "tapt"]


@pytest.fixture(scope="module", params=["meta_tartan", "mt_tartan"])
def mixing(request, data_dir, cache_dir, tmp_path_factory):
    """A run that mixes tasks, its method's name first."""
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, recorded_run(toy(data_dir, cache_dir, request.param), folder)


@pytest.fixture(scope="module")
def chain(data_dir, cache_dir, tmp_path_factory):
    """A run of two stages with a task each."""
    return recorded_run(toy(data_dir, cache_dir, "tapt"), tmp_path_factory.mktemp("chain"))


def weights_of(run) -> pd.DataFrame:
    return pd.read_csv(run.folder / "steps.csv")


def test_task_weights_have_one_row_for_each_step_and_task(mixing):
    table = weights_of(mixing[1])
    assert tuple(table.columns) == COLUMNS
    rows = list(zip(table["stage"], table["step"], table["task"], strict=True))
    assert rows == [("joint", step, task) for step in range(1, 7) for task in TASKS]


def test_the_weights_of_a_step_sum_to_1(mixing):
    sums = weights_of(mixing[1]).groupby("step")["weight"].sum()
    assert list(sums) == pytest.approx([1] * 6, abs=1e-5)


def test_cosines_are_there_where_there_is_a_meta_gradient(mixing):
    method, run = mixing
    table = weights_of(run)
    if method == "meta_tartan":
        assert table["cosine"].abs().max() <= 1
        assert table["weight"].nunique() > 1
    else:
        assert table["cosine"].isna().all()
    assert (table["loss"] > 0).all()
    assert (table["gradient_norm"] > 0).all()


def test_the_last_row_is_what_the_result_reports(mixing):
    table = weights_of(mixing[1])
    last = table[table["step"] == 6].set_index("task")["weight"]
    assert dict(last) == pytest.approx(mixing[1].result["final_task_weights"], abs=1e-5)


def test_losses_and_dev_metrics_are_logged_as_csv(mixing):
    table = pd.read_csv(mixing[1].folder / "logs" / "joint" / "metrics.csv")
    for task in TASKS:
        logged = table[["step", f"loss/{task}"]].dropna()
        assert list(logged["step"]) == [0, 1, 2, 3, 4, 5]  # as Lightning counts
        written = weights_of(mixing[1])
        written = written[written["task"] == task]["loss"]
        assert list(logged[f"loss/{task}"]) == pytest.approx(list(written), rel=1e-4)
    assert table["dev/macro_f1"].notna().sum() == 1
    assert ("meta_loss" in table) == (mixing[0] == "meta_tartan")


def test_loggers_get_the_steps_they_are_asked_to(data_dir, cache_dir, tmp_path):
    options = toy(data_dir, cache_dir, "finetune", "trainer.log_every_n_steps=3")
    run = recorded_run(options, tmp_path)
    table = pd.read_csv(run.folder / "logs" / "finetune" / "metrics.csv")
    assert list(table[["step", "loss/end_task"]].dropna()["step"]) == [2, 5]
    assert list(weights_of(run)["step"]) == [1, 2, 3, 4, 5, 6]


def test_loggers_get_the_runs_options_and_its_scores_on_test(mixing):
    method, run = mixing
    for stage in ("joint", "joint-test"):
        options = yaml.safe_load((run.folder / "logs" / stage / "hparams.yaml").read_text())
        assert (options["method"]["name"], options["seed"]) == (method, 0)
        assert "run" not in options
    table = pd.read_csv(run.folder / "logs" / "joint-test" / "metrics.csv")
    (score,) = table["test/macro_f1"]
    assert score == pytest.approx(run.result["test"]["whole"]["metrics"]["macro_f1"], abs=1e-6)


def test_every_stage_logs_into_a_folder_of_its_own(chain):
    for stage, task in (("tapt", "tapt"), ("finetune", "end_task")):
        folder = chain.folder / "logs" / stage
        table = pd.read_csv(folder / "metrics.csv")
        assert table[f"loss/{task}"].notna().sum() == 6
        (events,) = folder.glob("events.out.tfevents.*")
        assert events.stat().st_size > 0


def test_tasks_that_train_alone_are_logged_too_but_have_no_figure(chain):
    table = pd.read_csv(chain.folder / "steps.csv")
    rows = list(zip(table["stage"], table["step"], table["task"], strict=True))
    assert rows == [
        (stage, step, task)
        for stage, task in (("tapt", "tapt"), ("finetune", "end_task"))
        for step in range(1, 7)
    ]
    assert (table["weight"] == 1).all()
    assert not (chain.folder / "task_weights.png").exists()


def test_steps_are_written_once_however_often_the_log_is_flushed(
    data_dir, cache_dir, tmp_path, monkeypatch, mixing
):
    monkeypatch.setattr("tartan.methods.fit.FLUSH_EVERY", 4)
    options = ["method.stages.joint.evaluate_every=3", "method.stages.joint.patience=null"]
    run = recorded_run(toy(data_dir, cache_dir, mixing[0], *options), tmp_path)
    pd.testing.assert_frame_equal(weights_of(run), weights_of(mixing[1]))


def lines_of(*stages_and_steps):
    rest = "," * (len(COLUMNS) - 3)
    return [",".join(COLUMNS), *(f"{stage},{step},t{rest}" for stage, step in stages_and_steps)]


def as_bytes(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def test_own_rows_torn_lines_and_repeated_ones_are_not_those_before_a_stage():
    warm = lines_of(("warm", 1), ("warm", 2))
    joint = lines_of(("joint", 1), ("joint", 2))[1:]
    torn = b"joint,4,t,0.3"
    assert rows_before(as_bytes([*warm, *joint]) + torn, "joint") == as_bytes(warm)
    assert rows_before(as_bytes([*warm, *warm[1:], *joint, *warm]), "joint") == as_bytes(warm)
    assert rows_before(as_bytes(warm[1:]) + b"\xff\xfe", "joint") == as_bytes(warm)
    assert rows_before(b"", "joint") == b""


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff" * 100])
def test_a_log_that_was_changed_is_put_back_and_said_so(content, tmp_path, caplog):
    path, whole = tmp_path / "steps.csv", as_bytes(lines_of(("joint", 1)))
    path.write_bytes(content)
    put_back(path, whole)
    assert path.read_bytes() == whole
    assert "has been changed" in caplog.text


def test_rows_after_the_last_checkpoint_are_dropped_without_a_word(tmp_path, caplog):
    path, whole = tmp_path / "steps.csv", as_bytes(lines_of(("joint", 1)))
    path.write_bytes(whole + b"joint,2,t,0.3")
    put_back(path, whole)
    assert path.read_bytes() == whole
    assert not caplog.records


@pytest.mark.parametrize("damage", ["emptied", "removed", "twice"])
def test_a_log_that_is_changed_while_it_is_written_ends_the_same(
    damage, data_dir, cache_dir, tmp_path, monkeypatch, mixing, caplog
):
    monkeypatch.setattr("tartan.methods.fit.FLUSH_EVERY", 2)
    writes = []
    append = StepLog._append

    def damaging(self, rows):
        append(self, rows)
        writes.append(self._file)
        if len(writes) == 2:
            content = self._file.read_bytes()
            if damage == "removed":
                self._file.unlink()
            else:
                self._file.write_bytes({"emptied": b"", "twice": content * 2}[damage])

    monkeypatch.setattr(StepLog, "_append", damaging)
    run = recorded_run(toy(data_dir, cache_dir, mixing[0]), tmp_path)
    assert len(writes) > 2
    pd.testing.assert_frame_equal(weights_of(run), weights_of(mixing[1]))
    assert ("has been changed" in caplog.text) == (damage != "twice")


def test_without_loggers_the_task_weights_are_still_written(data_dir, cache_dir, tmp_path):
    run = recorded_run(toy(data_dir, cache_dir, "mt_tartan", "logger=none"), tmp_path)
    assert len(weights_of(run)) == 18
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (zlib.compress(b"0" * 2000), "is cut, or too long"),
        (zlib.compress(b"0" * 900)[:-5], "is cut, or too long"),
        (b"no log", "is damaged"),
    ],
)
def test_a_log_in_a_checkpoint_that_would_fill_the_memory_is_refused(packed, said, monkeypatch):
    monkeypatch.setattr(tartan.methods.step_log, "_LARGEST", 1000)
    assert _unpacked(zlib.compress(b"0" * 900)) == b"0" * 900
    with pytest.raises(UserError, match=rf"step log in the checkpoint {said}.*resume=false"):
        _unpacked(packed)
