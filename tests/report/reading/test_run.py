"""Reading a run back: plain data, checked, and nothing in it executed."""

from __future__ import annotations

import json

import pytest
import yaml

from tartan.errors import UserError
from tartan.report.reading.run import read_command, read_run
from tartan.run_folder.stored import stored_options
from tests.report.made_up_runs import altered, config_of, result_of, write_run

GOOD = result_of("mt_tartan", 1, 0.5, auxiliaries=["dapt", "tapt"], flops=3e9)


def test_a_run_is_read_whole(tmp_path):
    folder = write_run(tmp_path / "run", GOOD, overrides=["+experiment=x", "a='b c'"])
    run = read_run(folder, "run")
    assert (run.result.task, run.result.seed, run.result.method) == ("toy", 1, "mt_tartan")
    assert run.result.score("whole") == run.result.score("unseen") == 0.5
    assert run.result.dev_score == 0.5
    assert run.result.flops == pytest.approx(3e9)
    assert run.result.seconds == 61
    assert run.result.is_text
    assert run.options["method.stages.joint.max_steps"] == 50
    assert "data_dir" not in run.options
    assert run.command == "python -m src.run +experiment=x 'a='\"'\"'b c'\"'\"''"


def test_the_command_says_where_its_configs_are(tmp_path):
    folder = write_run(tmp_path / "run", GOOD, overrides=["+experiment=mine"])
    source = {"provider": "command-line", "path": "/my_conf", "schema": "file"}
    stored = {"hydra": {"runtime": {"config_sources": [source]}}}
    (folder / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump(stored))
    assert read_command(folder) == "python -m src.run --config-dir=/my_conf +experiment=mine"
    stored = {"hydra": {"overrides": {"hydra": ["hydra.searchpath=[file://my_conf]"]}}}
    (folder / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump(stored))
    assert read_command(folder).endswith(" +experiment=mine 'hydra.searchpath=[file://my_conf]'")


def test_costs_are_optional_and_unknown_entries_are_ignored(tmp_path):
    result = altered(GOOD, "stages.0.cost", ...)
    result["something_new"] = {"a": [1]}
    assert read_run(write_run(tmp_path / "a", result), "a").result.flops is None
    unknown = {"flops": None, "padding_share": None, "peak_memory_bytes": 5}
    result = altered(GOOD, "stages.0.cost", unknown)
    assert read_run(write_run(tmp_path / "b", result), "b").result.flops is None


def test_only_some_texts_need_an_unseen_score(tmp_path):
    result = result_of("finetune", 0, 0.5, unseen_examples=0)
    run = read_run(write_run(tmp_path / "run", result), "run")
    assert run.result.score("unseen") is None


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("schema", 3, "schema: Input should be 2"),
        ("task", ..., "task: Field required"),
        ("task", 5, "task: Input should be a valid string"),
        ("task", "x" * 400, "task: String should have at most 300 characters"),
        ("seed", "0", "seed: Input should be a valid integer"),
        ("labels", [], "there are no labels for macro_f1"),
        ("stages", [], "stages: List should have at least 1 item"),
        (
            "stages.0.measured.seconds",
            -1,
            "measured.seconds: Input should be greater than or equal",
        ),
        (
            "stages.0.measured.seconds",
            float("nan"),
            "measured.seconds: Input should be a finite number",
        ),
        ("stages.0.evaluations", [[1]], "stages.0.evaluations.0.1: Field required"),
        ("stages.0.cost", {"flops": {"a": -1}}, "stages.0.cost.flops.a"),
        ("auxiliaries.dapt.size", "most", "auxiliaries.dapt.size"),
        ("test.whole.metrics", None, "test has no finite macro_f1"),
        ("test.whole.metrics", {"macro_f1": float("inf")}, "test has no finite macro_f1"),
        ("dev.whole.metrics", {"other": 0.5}, "dev has no finite macro_f1"),
        (
            "test.unseen.metrics",
            {"macro_f1": float("nan")},
            "the unseen part of test has no finite macro_f1",
        ),
        (
            "baselines",
            [{"name": "tf_idf", "dev": {}, "test": {"macro_f1": 1.0}}],
            "baseline tf_idf has no finite macro_f1 on dev",
        ),
        (
            "baselines",
            [{"name": "tf_idf", "dev": {"macro_f1": 0.5}, "test": {"x": 1.0}}],
            "baseline tf_idf has no finite macro_f1 on test",
        ),
        ("test.whole.confusion", [[1, 2]], "the confusion on test is not 3 x 3"),
        ("test.whole.confusion", [[1, 2, -3]] * 3, "test.whole.confusion.0.2"),
    ],
)
def test_a_result_that_is_none_is_one_line_that_says_why(path, value, said, tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    (folder / "result.json").write_text(json.dumps(altered(GOOD, path, value)))
    with pytest.raises(UserError) as caught:
        read_run(folder, "run")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b"null", b"\xff\xfe\x00", b"[" * 100_000, b'{"schema": 2}'],
    ids=["empty", "torn", "list", "null", "bytes", "nested", "incomplete"],
)
def test_a_damaged_result_is_one_line(content, tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    (folder / "result.json").write_bytes(content)
    with pytest.raises(UserError, match=r"^result\.json: ") as caught:
        read_run(folder, "run")
    assert "\n" not in str(caught.value)


def test_a_result_that_is_too_large_or_no_file_is_not_read(tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    with (folder / "result.json").open("r+b") as file:
        file.truncate(1 << 30)  # sparse
    with pytest.raises(UserError, match=r"too large \(1,073,741,824 bytes\)"):
        read_run(folder, "run")
    (folder / "result.json").unlink()
    (folder / "result.json").mkdir()
    with pytest.raises(UserError, match="not there"):
        read_run(folder, "run")


BOMB = "a: &a [x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 8)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "content",
    [
        BOMB,
        "a: *b",
        "a: !!python/object/apply:os.system ['touch executed']",
        "a: [",
        "- 1",
        "a: " + "[" * 5_000 + "]" * 5_000,
    ],
    ids=["bomb", "dangling", "tag", "torn", "list", "nested"],
)
def test_a_config_that_is_no_plain_mapping_is_one_line(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_run(tmp_path / "run", GOOD)
    (folder / "config.yaml").write_text(content)
    with pytest.raises(UserError) as caught:
        stored_options(folder)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "executed").exists()


def test_nothing_in_a_config_is_built_or_resolved(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "s3cret")
    options = {"task._target_": "os.abort", "x": "${oc.env:MY_SECRET}", "y": "${undefined:1}"}
    folder = write_run(tmp_path / "run", GOOD, config_of(GOOD, options))
    found = stored_options(folder)
    assert found["task._target_"] == "os.abort"
    assert found["x"] == "${oc.env:MY_SECRET}"


def test_a_folder_may_not_tell_its_command_or_its_config(tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    (folder / ".hydra" / "overrides.yaml").unlink()
    (folder / "config.yaml").unlink()
    run = read_run(folder, "run")
    assert (run.command, run.options) == (None, {})


@pytest.mark.parametrize("content", [{"a": 1}, [1], "text"])
def test_overrides_that_are_none_are_named(content, tmp_path):
    folder = write_run(tmp_path / "run", GOOD)
    (folder / ".hydra" / "overrides.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match="is not a list of overrides"):
        read_command(folder)
