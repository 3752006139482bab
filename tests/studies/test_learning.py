"""How a run learned: its last losses, of the right stage, and when dev was best."""

from __future__ import annotations

import pytest

from studies.learning import learning_of
from tartan.report.runs import read_run
from tests.report.made_up_runs import config_of, result_of, write_run

HEADER = "stage,step,task,weight,cosine,loss,gradient_norm"


def learned(folder, method, lines):
    result = result_of(method, 0, 0.5, auxiliaries=["tapt"] if method == "mt_tartan" else [])
    write_run(folder, result, config_of(result), steps=False)
    if lines:
        (folder / "steps.csv").write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
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


def test_a_stage_without_the_end_task_does_not_count(tmp_path):
    lines = [f"finetune,{step},end_task,1,,0.25," for step in range(1, 51)]
    first = [f"tapt,{step},tapt,1,,7," for step in range(1, 51)]
    found, stage = learned(tmp_path / "run", "finetune", [*first, *lines])
    assert (found["end_task_loss"], found["auxiliary_loss"]) == (0.25, None)
    assert found["best_at"] == stage.best_step / stage.steps


@pytest.mark.parametrize("lines", [[], ["tapt,1,tapt,1,,7,"]])
def test_without_steps_of_the_end_task_nothing_is_known(tmp_path, lines):
    assert learned(tmp_path / "run", "finetune", lines)[0] == {}
