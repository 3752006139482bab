"""Reading runs back: plain data, checked, nothing executed; finished and unfinished."""

from __future__ import annotations

import json

import pytest

from tartan.errors import UserError
from tartan.report.runs import find_runs, read_run
from tartan.runs.folder import stored_options
from tests.report.made_up_runs import altered, config_of, result_of, write_run

GOOD = result_of("mt_tartan", 1, 0.5, auxiliaries=["dapt", "tapt"], flops=3e9)


def test_a_run_is_read_whole(tmp_path):
    folder = write_run(tmp_path / "run", GOOD, overrides=["+experiment=x", "a='b c'"])
    run = read_run(folder, "run")
    assert (run.result.task, run.result.seed, run.result.method) == ("toy", 1, "mt_tartan")
    assert run.result.score("whole") == run.result.score("unseen") == run.result.dev_score == 0.5
    assert run.result.flops == pytest.approx(3e9)
    assert run.options["method.stages.joint.max_steps"] == 50
    assert "data_dir" not in run.options
    assert run.command == "tartan run +experiment=x 'a='\"'\"'b c'\"'\"''"
    (folder / ".hydra" / "hydra.yaml").unlink()
    (folder / "config.yaml").unlink()
    run = read_run(folder, "run")
    assert (run.command, run.options) == ("", {})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schema", 3, "schema: Input should be 2"),
        ("setting_id", "", "no setting_id"),
        ("labels", [], "there are no labels for macro_f1"),
        ("test.whole.metrics", {"macro_f1": float("inf")}, "a score has no finite macro_f1"),
        ("test.whole.confusion", [[1, 2]], "the confusion on test is not 3 x 3"),
    ],
)
def test_a_result_that_is_none_is_one_line_that_says_why(path, value, message, tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    (folder / "result.json").write_text(json.dumps(altered(GOOD, path, value)))
    with pytest.raises(UserError) as caught:
        read_run(folder, "run")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_in_a_config_is_built_or_resolved(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "s3cret")
    options = {"task._target_": "os.abort", "x": "${oc.env:MY_SECRET}", "y": "${undefined:1}"}
    folder = write_run(tmp_path / "run", GOOD, config_of(GOOD, options))
    found = stored_options(folder)
    assert found["task._target_"] == "os.abort"
    assert found["x"] == "${oc.env:MY_SECRET}"
    assert read_run(folder, "run").options["x"] == "${oc.env:MY_SECRET}"


def test_every_kind_of_folder_is_told_from_the_others(tmp_path):
    write_run(tmp_path / "a" / "finished", GOOD)
    damaged = write_run(tmp_path / "a" / "damaged", GOOD)
    (damaged / "result.json").write_text("{")
    write_run(tmp_path / "b" / "stopped", None, config_of(GOOD))
    write_run(tmp_path / "early", None)
    write_run(tmp_path / "a" / "finished" / "checkpoints" / "other", GOOD)
    write_run(tmp_path / ".hidden" / "run", GOOD)
    (tmp_path / "notes").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "b")
    found = find_runs(tmp_path)
    assert [run.name for run in found.runs] == ["a/finished"]
    assert list(found.unreadable) == ["a/damaged"]
    assert found.unfinished == ["b/stopped", "early"]
    assert [run.name for run in find_runs(tmp_path / "a" / "finished").runs] == ["."]
