"""A finished run answers with its stored result, but only for the same config."""

from __future__ import annotations

import json
import os

import pytest
from omegaconf import OmegaConf

from tartan.errors import UserError
from tartan.run_folder.stored import (
    check_same_config,
    check_same_inputs,
    fresh_folder,
    later_folder,
    newer_inputs,
    stored_result,
)
from tests.run_folder.small_result import SMALL, small_result

CONFIG = {"seed": 0, "cache_dir": "/a", "encoder": {"name": "tiny"}, "lr": "${seed}", "run": {}}
WITHOUT_DATA = OmegaConf.create({"task": {}, "auxiliary": {}})


@pytest.fixture
def finished(tmp_path):
    """The folder of a finished run of `CONFIG`."""
    OmegaConf.save(OmegaConf.create(CONFIG), tmp_path / "config.yaml", resolve=True)
    (tmp_path / "result.json").write_text(json.dumps(SMALL))
    return tmp_path


def test_data_that_are_newer_than_the_result_are_named(finished, tmp_path):
    task = {"train": str(tmp_path / "labels.csv"), "dev": None, "test": str(tmp_path / "none.csv")}
    auxiliary = {"dapt": {"path": str(tmp_path / "texts.txt")}, "size": 1}
    config = OmegaConf.create({"task": task, "auxiliary": auxiliary})
    for name in ("labels.csv", "texts.txt"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    assert newer_inputs(config, finished) == []
    os.utime(tmp_path / "texts.txt", (2**33, 2**33))
    assert newer_inputs(config, finished) == [tmp_path / "texts.txt"]


def test_classes_that_are_newer_than_the_result_are_named(finished, tmp_path, monkeypatch):
    module = tmp_path / "mine" / "weighting.py"
    module.parent.mkdir()
    module.touch()
    monkeypatch.syspath_prepend(tmp_path)
    targets = {"weighting": {"_target_": "mine.weighting.Mine"}, "x": {"_target_": "Gone"}}
    config = OmegaConf.create({"task": {}, "auxiliary": {}, **targets})
    os.utime(module, (0, 0))
    assert newer_inputs(config, finished) == []
    os.utime(module, (2**33, 2**33))
    assert newer_inputs(config, finished) == [module]


def test_a_stages_class_that_is_newer_than_the_result_is_named(finished, tmp_path, monkeypatch):
    module = written(tmp_path / "my_stage.py", "")
    monkeypatch.syspath_prepend(tmp_path)
    stages = {"mine": {"module": "my_stage.Mine", "max_steps": 1}}
    config = OmegaConf.create({"task": {}, "auxiliary": {}, "method": {"stages": stages}})
    assert newer_inputs(config, finished) == []
    os.utime(module, (2**33, 2**33))
    assert newer_inputs(config, finished) == [module]


@pytest.mark.parametrize(
    "line",
    [
        "from re_exported.inside import Mine",
        "from .inside import Other as Mine",
        "from . import unrelated\nfrom .between import Mine",
    ],
)
def test_a_class_is_looked_for_where_its_package_has_it_from(line, finished, tmp_path, monkeypatch):
    package = tmp_path / "re_exported"
    files = {
        name: written(package / name, content)
        for name, content in {
            "__init__.py": line,
            "inside.py": "from re_exported import Mine",
            "between.py": "from .inside import Mine",
        }.items()
    }
    monkeypatch.syspath_prepend(tmp_path)
    target = {"weighting": {"_target_": "re_exported.Mine"}}
    config = OmegaConf.create({"task": {}, "auxiliary": {}, **target})
    assert newer_inputs(config, finished) == []
    for name in ("inside.py", "__init__.py"):
        os.utime(files[name], (2**33, 2**33))
        assert newer_inputs(config, finished) == [files[name]]
        os.utime(files[name], (0, 0))


@pytest.mark.parametrize("content", ["from . import (", "\0", "from ..... import Mine"])
def test_a_package_that_cannot_be_read_is_looked_at_no_further(
    content, finished, tmp_path, monkeypatch
):
    package = written(tmp_path / "unreadable" / "__init__.py", content)
    monkeypatch.syspath_prepend(tmp_path)
    target = {"weighting": {"_target_": "unreadable.Mine"}, "module": None}
    config = OmegaConf.create({"task": {}, "auxiliary": {}, **target})
    os.utime(package, (2**33, 2**33))
    assert newer_inputs(config, finished) == [package]


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
    assert newer_inputs(config, finished) == []
    os.utime(text, (2**33, 2**33))
    assert newer_inputs(config, finished) == [text]


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


@pytest.mark.parametrize("content", ["", "{}", "seed: 0\n", "other: 1\n"])
def test_a_config_that_lacks_most_options_is_damaged_and_no_other_run(content, finished):
    (finished / "config.yaml").write_text(content)
    with pytest.raises(UserError, match=r"config\.yaml is damaged.*resume=false, or remove"):
        stored_result(OmegaConf.create(CONFIG), finished)


def read_everything(folder):
    stored_result(OmegaConf.create(CONFIG), folder)
    check_same_inputs({"task train": "x"}, WITHOUT_DATA, folder)


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


def test_the_last_folder_where_the_same_run_was_started_over_is_found(tmp_path):
    config = OmegaConf.create(CONFIG)
    first, same, other, unread = (tmp_path / f"run{end}" for end in ("", "-2", "-3", "-4"))
    assert later_folder(config, first) is None
    for folder, seed in ((first, 0), (same, 0), (other, 1)):
        folder.mkdir()
        OmegaConf.save(OmegaConf.create(CONFIG | {"seed": seed}), folder / "config.yaml", True)
    unread.mkdir()
    (unread / "inputs.json").write_text("{}")
    assert later_folder(config, first) == same
    (same / "config.yaml").write_text("a: [")
    assert later_folder(config, first) is None


def test_of_another_config_the_line_says_how_to_go_on(tmp_path):
    (tmp_path / "config.yaml").write_text("seed: 1\ncache_dir: /a\nencoder: {name: tiny}\nlr: 0\n")
    said = "seed is 1 there, 0 here; name another .*, or start over .*resume=false"
    with pytest.raises(UserError, match=said):
        check_same_config(OmegaConf.create(CONFIG), tmp_path)
