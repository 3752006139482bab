"""What is left of every step: task weights as CSV, losses for the loggers."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from tartan.methods.step_log import COLUMNS, StepLog
from tests.in_process import recorded_run, toy

TASKS = ["end_task", "dapt", "tapt"]


@pytest.fixture(scope="module")
def run(data_dir, cache_dir, tmp_path_factory):
    options = ["method.stages.joint.evaluate_every=4", "trainer.log_every_n_steps=3"]
    chosen = toy(data_dir, cache_dir, "meta_tartan", *options)
    return recorded_run(chosen, tmp_path_factory.mktemp("run"))


@pytest.mark.slow
def test_the_log_has_one_row_for_each_step_and_task(run):
    table = pd.read_csv(run.folder / "steps.csv")
    assert tuple(table.columns) == COLUMNS
    rows = list(zip(table["stage"], table["step"], table["task"], strict=True))
    assert rows == [("joint", step, task) for step in range(1, 7) for task in TASKS]
    assert list(table.groupby("step")["weight"].sum()) == pytest.approx([1] * 6, abs=1e-5)
    assert table["cosine"].abs().max() <= 1
    assert (table[["loss", "gradient_norm"]] > 0).all(axis=None)
    last = table[table["step"] == 6].set_index("task")["weight"]
    assert dict(last) == pytest.approx(run.result["final_task_weights"], abs=1e-5)


@pytest.mark.slow
def test_loggers_get_losses_metrics_options_and_the_scores_on_test(run):
    table = pd.read_csv(run.folder / "logs" / "joint" / "metrics.csv")
    written = pd.read_csv(run.folder / "steps.csv").pivot(index="step", columns="task")["loss"]
    for task in TASKS:
        logged = table[["step", f"loss/{task}"]].dropna()
        assert list(logged["step"]) == [2, 5]  # as Lightning counts
        assert list(logged[f"loss/{task}"]) == pytest.approx(list(written[task][[3, 6]]), rel=1e-4)
    assert table["dev/macro_f1"].notna().sum() == 2
    for stage in ("joint", "joint-test"):
        options = yaml.safe_load((run.folder / "logs" / stage / "hparams.yaml").read_text())
        assert (options["method"]["name"], options["seed"]) == ("meta_tartan", 0)
        assert "run" not in options
    (score,) = pd.read_csv(run.folder / "logs" / "joint-test" / "metrics.csv")["test/macro_f1"]
    reported = run.result["test"]["whole"]["metrics"]["macro_f1"]
    assert score == pytest.approx(reported, abs=1e-6)


def test_rows_that_will_be_repeated_and_torn_lines_are_cut(tmp_path):
    path, log = tmp_path / "steps.csv", StepLog(tmp_path, "joint")
    log.cut(3)
    assert not path.exists()
    rest = "," * (len(COLUMNS) - 3) + "\n"
    rows = ("warm,1,a", "warm,9,a", "joint,1,a", "joint,2,a")
    whole = ",".join(COLUMNS) + "\n" + "".join(row + rest for row in rows)
    path.write_bytes(whole.encode() + f"joint,3,a{rest}".encode() + b"\xff\xfejoint,4,0")
    log.cut(2)
    assert path.read_text() == whole
    log.append([[3, "a", *[""] * (len(COLUMNS) - 3)]])
    assert path.read_text() == f"{whole}joint,3,a{rest}"
