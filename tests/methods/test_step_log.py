"""What is left of every step: task weights as CSV, losses for the loggers."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from tartan.methods.step_log import COLUMNS, _Table
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


def test_steps_are_written_once_however_often_the_log_is_flushed(
    data_dir, cache_dir, tmp_path, monkeypatch, mixing
):
    monkeypatch.setattr("tartan.methods.fit.FLUSH_EVERY", 4)
    options = ["method.stages.joint.evaluate_every=3", "method.stages.joint.patience=null"]
    run = recorded_run(toy(data_dir, cache_dir, mixing[0], *options), tmp_path)
    pd.testing.assert_frame_equal(weights_of(run), weights_of(mixing[1]))


def test_rows_that_will_be_repeated_and_torn_lines_are_cut(tmp_path):
    path, columns = tmp_path / "steps.csv", ("stage", "step", "loss")
    table = _Table(path, columns, "joint")
    table.cut(3)
    assert not path.exists()
    whole = "stage,step,loss\nwarm,1,2\nwarm,9,1\njoint,1,2\njoint,2,1\n"
    path.write_bytes(whole.encode() + b"joint,3,1\n\xff\xfejoint,4,0")
    table.cut(2)
    assert path.read_text() == whole
    table.append([[3, 0.5]])
    assert path.read_text() == whole + "joint,3,0.5\n"
    table.cut(0)
    assert path.read_text() == "stage,step,loss\nwarm,1,2\nwarm,9,1\n"
