"""`result.json` as one model: what is written is what is read, and what is refused."""

from __future__ import annotations

import json
import math

import pytest

from tartan.errors import UserError
from tartan.runs.folder import RESULT
from tartan.runs.result import read_result, write_result
from tests.report.made_up_runs import altered, result_of
from tests.runs.small_result import SCORES, SMALL, small_result


def test_what_is_written_is_what_is_read_and_holds_no_defaults(tmp_path):
    splits = {"whole": SCORES, "unseen": SCORES}
    result = small_result(weighting=None, test=splits)
    write_result(result, tmp_path)
    assert result.as_json() == SMALL | {"weighting": None, "test": splits}
    assert read_result(tmp_path) == result
    assert [path.name for path in tmp_path.iterdir()] == [RESULT]


@pytest.mark.parametrize(
    ("counted", "joint"),
    [
        ({"cost": {"tokens": {"end_task": 9, "tapt": 9}}}, True),
        ({"cost": {"flops": {"end_task": 9, "tapt": 9}}}, True),
        ({"cost": {"flops": {"tapt": 9}}}, False),
        ({"cost": {"flops": {"end_task": 9, "meta_gradient": 9}}}, False),
        ({}, False),
    ],
)
def test_joint_is_what_trained_the_end_task_with_auxiliary_tasks_in_one_stage(counted, joint):
    auxiliaries = {"tapt": {"kind": "task", "size": 1, "examples": 8}}
    stages = [SMALL["stages"][0], SMALL["stages"][0] | counted]
    assert small_result(auxiliaries=auxiliaries, stages=stages).is_joint is joint


def test_a_score_that_is_not_finite_loses_no_training_but_enters_no_statistics(tmp_path):
    scores = {"examples": 4, "metrics": {"macro_f1": math.nan}}
    write_result(small_result(dev={"whole": scores, "unseen": scores}), tmp_path)
    assert math.isnan(read_result(tmp_path, finite=False).dev_score)
    with pytest.raises(UserError, match=r"result\.json: a score has no finite macro_f1"):
        read_result(tmp_path)


NO_SCORES = {"whole": {"examples": 4, "metrics": {}}, "unseen": SCORES}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("schema", 1), ("schema", 3), ("seed", "0"), ("seed", 2**63), ("seed", 10**400),
        ("stages", []), ("stages.0.steps", 2**63), ("test.whole.confusion.0.0", 2**63),
        ("dev", NO_SCORES),
    ],
)  # fmt: skip
def test_a_file_that_is_no_result_is_one_line_that_names_what(place, value, tmp_path):
    content = altered(result_of("finetune", 0, 0.5), place, value)
    (tmp_path / RESULT).write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"^result\.json: .*{place}") as caught:
        read_result(tmp_path)
    assert "\n" not in str(caught.value)
