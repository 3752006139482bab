"""A run as a row: what it holds, and that a file of rows is read back as it was written."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from studies.row import CELL, CellNote, learning_of, read_rows, row_of, write_rows
from tartan.errors import UserError
from tartan.report.runs import read_run
from tests.report.made_up_runs import config_of, result_of, write_run
from tests.studies.made_up_rows import row

NOTE = CellNote(part="toy", budget="3x", setting="ours", commit="c0ffee")


def made_up(folder, method="mt_tartan", seed=1, options=None, **more):
    result = result_of(method, seed, 0.5, auxiliaries=["tapt"], flops=2e12, **more)
    write_run(folder, result, config_of(result, options))
    (folder / CELL).write_text(NOTE.model_dump_json())
    return folder


def test_a_run_is_a_row(tmp_path):
    found = row_of(made_up(tmp_path / "run", unseen=0.25, dev=0.75, train=300), draws_data=False)
    assert (found.budget, found.setting, found.seed, found.commit) == ("3x", "ours", 1, "c0ffee")
    assert (found.task, found.labelled, found.encoder) == ("toy", 300, "tiny")
    assert (found.dev, found.test, found.unseen) == (0.75, 0.5, 0.25)
    assert (found.method, found.weighting) == ("mt_tartan", "uniform")
    assert (found.auxiliaries, found.tflop, found.seconds) == ("tapt 300", 2.0, 61.0)
    assert found.stages == "joint 50: 0.7266"  # 0.75 (1 - 0.5^5)
    assert found.end_task_weight == 0.5


def test_the_digest_is_of_what_is_trained_but_for_the_seed(tmp_path):
    def digest(name, draws_data=False, **options):
        folder = made_up(tmp_path / name, options=options, seed=options.get("seed", 1))
        return row_of(folder, draws_data).config

    first = digest("first")
    assert first == digest("other seed", seed=5)
    assert first != digest("other option", **{"task.max_length": 64})
    drawn = [
        digest(f"drawn by {seed}", draws_data=True, **{"task.split_seed": seed, "seed": seed})
        for seed in (3, 4)
    ]
    fixed = [digest(f"fixed, {seed}", **{"task.split_seed": 3, "seed": seed}) for seed in (3, 4)]
    assert drawn[0] == drawn[1] != fixed[0] == fixed[1]
    assert digest("other split", **{"task.split_seed": 4, "seed": 4}) != fixed[0]


def test_rows_are_read_as_they_were_written(tmp_path):
    written = [
        row("finetune", 0, 0.123456, unseen=None, tflop=None),
        row("mt_tartan", 1, 0.5, end_task_weight=0.25, stages="joint 3: 0.1; x, y", budget="3x"),
    ]
    write_rows(tmp_path / "rows.csv", written)
    assert read_rows(tmp_path / "rows.csv") == written
    assert read_rows(tmp_path / "other.csv") == []
    write_rows(tmp_path / "twice.csv", [*written, written[0]])
    with pytest.raises(UserError, match=r"twice\.csv"):
        read_rows(tmp_path / "twice.csv")
    (tmp_path / "wide.csv").write_text(
        (tmp_path / "rows.csv").read_text().replace("commit", "who", 1)
    )
    with pytest.raises(ValidationError, match="who"):
        read_rows(tmp_path / "wide.csv")


def learned(folder, method, lines):
    result = result_of(method, 0, 0.5, auxiliaries=["tapt"] if method == "mt_tartan" else [])
    write_run(folder, result, config_of(result), steps=False)
    if lines:
        (folder / "steps.csv").write_text(
            "\n".join(["stage,step,task,weight,cosine,loss,gradient_norm", *lines]) + "\n",
            encoding="utf-8",
        )
    run = read_run(folder, "run")
    return learning_of(folder, run.result), run.result.stages[-1]


def test_losses_are_those_of_the_last_tenth(tmp_path):
    lines = []
    for step in range(1, 51):
        lines.append(f"joint,{step},end_task,0.5,{-step / 100},{step},{step / 10}")
        lines.append(f"joint,{step},tapt,0.5,,{'' if step == 50 else 2 * step},7")
    found, stage = learned(tmp_path / "run", "mt_tartan", lines)
    assert stage.steps == 50
    assert found == {
        "end_task_loss": pytest.approx((46 + 47 + 48 + 49 + 50) / 5),
        "auxiliary_loss": pytest.approx(2 * (46 + 47 + 48 + 49) / 4),
        "best_at": stage.best_step / 50,
        "end_task_norm": pytest.approx(2.55),
        "auxiliary_norm": 7,
        "end_task_cosine": pytest.approx(-0.255),
    }
