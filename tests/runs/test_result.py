"""`result.json` as one model: what is written is what is read, and what is refused."""

from __future__ import annotations

import json
import math

import pytest

from tartan.errors import UserError
from tartan.runs.name import RESULT
from tartan.runs.result import Result, read_result, write_result
from tests.report.made_up_runs import altered, result_of
from tests.runs.small_result import SCORES, SMALL, small_result


def write(folder, content):
    (folder / RESULT).write_text(json.dumps(content))


def test_what_is_written_is_what_is_read_and_holds_no_defaults(tmp_path):
    result = small_result(weighting=None, test={"whole": SCORES, "unseen": SCORES})
    write_result(result, tmp_path)
    assert read_result(tmp_path) == result
    assert json.loads((tmp_path / RESULT).read_text()) == result.as_json()
    assert result.as_json() == SMALL | {
        "weighting": None,
        "test": {"whole": SCORES, "unseen": SCORES},
    }


def test_a_result_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    write_result(small_result(), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Result, "as_json", lambda self: {"seed": object()})
        with pytest.raises(TypeError):
            write_result(small_result(seed=1), tmp_path)
    assert read_result(tmp_path) == small_result()
    write_result(small_result(seed=2), tmp_path)
    assert read_result(tmp_path).seed == 2
    assert [path.name for path in tmp_path.iterdir()] == [RESULT]


def test_a_result_from_before_the_first_version_is_refused_in_a_line(tmp_path):
    old = altered(result_of("finetune", 0, 0.5), "schema", 1)
    old["stages"][0] |= {"seconds": old["stages"][0].pop("measured")["seconds"]}
    write(tmp_path, old)
    with pytest.raises(UserError) as caught:
        read_result(tmp_path)
    assert str(caught.value) == "result.json: schema: Input should be 2"


@pytest.mark.parametrize(
    ("counted", "joint"),
    [
        ({"final_task_weights": {"end_task": 0.5, "tapt": 0.5}}, True),
        ({"cost": {"tokens": {"end_task": 9, "tapt": 9}}}, True),
        ({"cost": {"examples": {"end_task": 9, "tapt": 9}}}, True),
        ({"cost": {"flops": {"end_task": 9, "tapt": 9}}}, True),
        ({"cost": {"flops": {"tapt": 9}}}, False),
        ({"cost": {"flops": {"end_task": 9, "meta_gradient": 9}}}, False),
        ({}, False),
    ],
)
def test_joint_is_what_trained_the_end_task_with_auxiliary_tasks(counted, joint):
    """Whatever the method is called; files of earlier versions lack some of the counts."""
    auxiliaries = {"tapt": {"kind": "task", "size": 1, "examples": 8}}
    stage = SMALL["stages"][0] | counted
    assert small_result(auxiliaries=auxiliaries, stages=[stage]).is_joint is joint


@pytest.mark.parametrize(("method", "joint"), [("tapt", False), ("tapt_mt_tartan", True)])
def test_the_tasks_have_to_be_in_one_stage(tmp_path, method, joint):
    write(tmp_path, result_of(method, 0, 0.5, auxiliaries=["tapt"]))
    assert read_result(tmp_path).is_joint is joint


def test_a_runs_own_result_is_kept_where_one_from_elsewhere_is_refused(tmp_path):
    """Long names and scores that are not finite are no reason to lose a training."""
    scores = {"examples": 4, "metrics": {"macro_f1": math.nan}}
    named = small_result(labels=["A" * 400, "B"], dev={"whole": scores, "unseen": scores})
    write_result(named, tmp_path)
    own = read_result(tmp_path, bounded=False)
    assert own.labels == named.labels
    assert math.isnan(own.dev_score)
    with pytest.raises(UserError, match=r"result\.json: labels\.0: .*at most 300 characters"):
        read_result(tmp_path)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"schema": 3}, "schema"),
        ({"seed": "0"}, "seed"),
        ({"stages": []}, "stages"),
        ({"dev": {"whole": {"examples": 4, "metrics": {}}, "unseen": SCORES}}, "macro_f1"),
    ],
)
def test_a_file_that_is_no_result_is_one_line_that_names_what(change, named, bounded, tmp_path):
    write(tmp_path, SMALL | change)
    with pytest.raises(UserError) as caught:
        read_result(tmp_path, bounded=bounded)
    assert str(caught.value).startswith("result.json: ")
    assert named in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("number", [2**63, 10**30, 10**400], ids=["64 bits", "30", "400"])
@pytest.mark.parametrize(
    "place", ["seed", "dev.whole.examples", "stages.0.steps", "test.whole.confusion.0.0"]
)
def test_a_number_that_no_column_can_hold_is_one_line(number, place, tmp_path):
    write(tmp_path, altered(result_of("finetune", 0, 0.5), place, number))
    with pytest.raises(UserError, match=rf"^result\.json: {place}: ") as caught:
        read_result(tmp_path)
    assert "\n" not in str(caught.value)
