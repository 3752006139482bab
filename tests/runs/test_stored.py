"""A finished run answers with its stored result, but only for the same config."""

from __future__ import annotations

import json
import os

import pytest
from omegaconf import OmegaConf

from tartan.errors import UserError
from tartan.runs.folder import check_same_inputs, fresh_folder, newer_data
from tartan.runs.result import stored_result
from tests.runs.small_result import SMALL, small_result

CONFIG = {"seed": 0, "cache_dir": "/a", "encoder": {"name": "tiny"}, "lr": "${seed}", "run": {}}


@pytest.fixture
def finished(tmp_path):
    """The folder of a finished run of `CONFIG`."""
    OmegaConf.save(OmegaConf.create(CONFIG), tmp_path / "config.yaml", resolve=True)
    (tmp_path / "result.json").write_text(json.dumps(SMALL))
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {"task": {"train": "~/text.txt"}},
        {"task": {"domain": "~/text.txt"}},
        {"auxiliary": {"dapt": {"path": "~/text.txt"}}},
        {"auxiliary": {"aang": {"data": {"domain": {"path": "~/text.txt"}}}}},
        {"auxiliary": {"aang": {"data": {"domain": "~/text.txt"}}}},
    ],
)
def test_text_that_is_newer_is_named_wherever_it_stands(options, finished, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    text = written(tmp_path / "text.txt", "text")
    config = OmegaConf.create({"task": {}, "auxiliary": {}} | options)
    assert newer_data(config, finished) == []
    os.utime(text, (2**33, 2**33))
    assert newer_data(config, finished) == [text]


def written(path, content):
    """A file that is older than any result."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    os.utime(path, (0, 0))
    return path


def test_the_same_config_gets_the_stored_result(finished):
    assert stored_result(OmegaConf.create(CONFIG), finished) == small_result()


def test_an_unfinished_run_has_no_result(tmp_path):
    assert stored_result(OmegaConf.create(CONFIG), tmp_path) is None


def test_where_things_are_does_not_matter(finished):
    task = {"cache_dir": "/b", "data_dir": "/c"}  # as tasks refer to them
    moved = CONFIG | {"cache_dir": "/b", "run": {"folder": "x"}, "num_workers": 2, "task": task}
    assert stored_result(OmegaConf.create(moved), finished) == small_result()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "lr is 0 there, 1 here and 1 more"),
        ({"encoder": {"name": "minilm"}}, "encoder.name is 'tiny' there, 'minilm' here"),
        ({"extra": 1}, "extra is None there, 1 here"),
    ],
)
def test_another_config_is_told_what_differs(finished, change, named):
    with pytest.raises(UserError) as caught:
        stored_result(OmegaConf.create(CONFIG | change), finished)
    assert named in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def read_everything(folder):
    stored_result(OmegaConf.create(CONFIG), folder)
    check_same_inputs({"task train": "x"}, folder)


def check_is_named(folder, name, content):
    """A file of this content is one line that names it."""
    (folder / name).write_text(content)
    with pytest.raises(UserError) as caught:
        read_everything(folder)
    assert str(caught.value).startswith(f"{folder / name} is damaged (")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["config.yaml", "result.json", "inputs.json"])
@pytest.mark.parametrize("content", ["{torn", "3", "[1]", "\x00"])
def test_a_damaged_file_is_named(name, content, finished):
    check_is_named(finished, name, content)


def test_a_strangers_config_is_plain_data(finished, monkeypatch, tmp_path):
    """Neither a YAML tag nor an interpolation nor a target in it does anything."""
    monkeypatch.setenv("SECRET", "do-not-tell")
    trap = tmp_path / "trap"
    for line in (
        f"seed: !!python/object/apply:os.mkdir ['{trap}']",
        "seed: ${oc.env:SECRET}",
        "seed: {_target_: os.mkdir, path: trap}",
    ):
        (finished / "config.yaml").write_text(line)
        with pytest.raises(UserError) as caught:
            stored_result(OmegaConf.create(CONFIG), finished)
        assert "do-not-tell" not in str(caught.value)
        assert not trap.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("result.json", "[" * 200_000),
        ("inputs.json", "[" * 200_000),
        ("config.yaml", "a: " + "[" * 5_000),
        ("config.yaml", "a: &a [1, 2]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
        ("config.yaml", "a: 1\n" * 300_000),
    ],
    ids=["deep JSON", "deep inputs", "deep YAML", "references", "too large"],
)
def test_a_file_that_would_fill_the_memory_is_named(name, content, finished):
    check_is_named(finished, name, content)


@pytest.mark.parametrize("begun_with", ["inputs.json", "config.yaml"])
def test_a_run_that_starts_over_takes_no_folder_in_which_one_was_begun(begun_with, tmp_path):
    assert fresh_folder(tmp_path / "run") == tmp_path / "run"
    for name in ("run", "run-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.log").touch()
    assert fresh_folder(tmp_path / "run") == tmp_path / "run"
    for name in ("run", "run-2"):
        (tmp_path / name / begun_with).touch()
    assert fresh_folder(tmp_path / "run") == tmp_path / "run-3"
