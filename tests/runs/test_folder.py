"""A run's folder: one process at a time, the same command only, and no stranger's code."""

from __future__ import annotations

import json
import os
import threading

import pytest
from filelock import FileLock
from omegaconf import OmegaConf

import tartan.runs.run
from tartan.errors import BusyError, UserError
from tartan.runs.folder import (
    LOCK,
    check_same_inputs,
    exclusive_run,
    fresh_folder,
    is_running,
    newer_data,
    remove_unbegun,
)
from tartan.runs.result import stored_result
from tests.conftest import ROOT
from tests.holder import held
from tests.in_process import config_of, toy
from tests.programs import called_for_text
from tests.runs.small_result import SMALL, small_result

CONFIG = {"seed": 0, "cache_dir": "/a", "encoder": {"name": "tiny"}, "lr": "${seed}", "run": {}}


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    with held(tmp_path) as process:
        yield process


@pytest.fixture
def finished(tmp_path):
    """The folder of a finished run of `CONFIG`."""
    OmegaConf.save(OmegaConf.create(CONFIG), tmp_path / "config.yaml", resolve=True)
    (tmp_path / "result.json").write_text(json.dumps(SMALL))
    return tmp_path


def test_a_run_where_another_is_running_is_refused(holder, tmp_path, data_dir, cache_dir):
    with pytest.raises(BusyError, match=r"another process is running in .*hydra\.run\.dir"):
        tartan.runs.run.run_experiment(config_of(toy(data_dir, cache_dir, "finetune")), tmp_path)
    assert not (tmp_path / "config.yaml").exists()


def test_a_killed_process_leaves_the_folder_free(holder, tmp_path):
    assert is_running(tmp_path)
    holder.kill()
    holder.wait()
    before = sorted(tmp_path.iterdir())
    assert not is_running(tmp_path)
    assert not is_running(tmp_path / "nothing")
    assert sorted(tmp_path.iterdir()) == before
    with exclusive_run(tmp_path):
        assert is_running(tmp_path)


def test_a_run_may_begin_while_someone_glances(tmp_path):
    """A report that looks at the lock must not turn a run away."""
    glance = FileLock(tmp_path / LOCK, thread_local=False)
    glance.acquire()
    threading.Timer(0.2, glance.release).start()
    with exclusive_run(tmp_path):
        pass


def test_processes_of_the_same_run_are_let_in(holder, tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    with exclusive_run(tmp_path):
        pass


@pytest.mark.parametrize("place", [LOCK, "steps.csv", "classifier", "checkpoints/a.part"])
def test_nothing_is_written_through_a_link_out_of_the_folder(place, tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (tmp_path / "precious").write_text("precious")
    (run / place).symlink_to(tmp_path / "precious")
    assert not is_running(run)
    with pytest.raises(UserError, match=rf"{place} is a link out of"), exclusive_run(run):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("run.log", "hydra.run.dir={run}"),
        (".hydra/config.yaml", "hydra.sweep.dir={run.parent} hydra.sweep.subdir=own -m"),
    ],
)
def test_hydra_writes_nothing_through_a_link_either(place, options, tmp_path):
    run, target = tmp_path / "runs" / "own", tmp_path / "elsewhere"
    (run / place).parent.mkdir(parents=True)
    target.write_text("precious")
    (run / place).symlink_to(target)
    options = options.format(run=run).split()
    done = called_for_text("src.run", "encoder=tiny", "max_steps=1", *options, cwd=ROOT)
    assert done.returncode == 1
    assert f"{place} is a link out of" in done.stderr
    assert done.stderr.count("\n") == 1
    assert target.read_text() == "precious"


def test_the_same_config_gets_the_stored_result_wherever_its_data_lie(finished, tmp_path):
    task = {"cache_dir": "/b", "data_dir": "/c"}  # as tasks refer to them
    moved = CONFIG | {"cache_dir": "/b", "run": {"folder": "x"}, "num_workers": 2, "task": task}
    for config in (CONFIG, moved):
        assert stored_result(OmegaConf.create(config), finished) == small_result()
    assert stored_result(OmegaConf.create(CONFIG), tmp_path / "another") is None


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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, "{torn") for name in ("config.yaml", "result.json", "inputs.json")),
        *((name, "[1]") for name in ("config.yaml", "result.json", "inputs.json")),
        ("result.json", "[" * 200_000),
        ("inputs.json", "[" * 200_000),
        ("config.yaml", "a: " + "[" * 5_000),
        ("config.yaml", "a: &a [1, 2]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
    ],
    ids=lambda value: value[:12],
)
def test_a_damaged_or_hostile_file_is_named_in_one_line(name, content, finished):
    (finished / name).write_text(content)

    def read_everything():
        stored_result(OmegaConf.create(CONFIG), finished)
        check_same_inputs({"task train": "x"}, finished)

    with pytest.raises(UserError) as caught:
        read_everything()
    assert str(caught.value).startswith(f"{finished / name} is damaged (")
    assert len(str(caught.value).splitlines()) == 1


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
    "options",
    [
        {"task": {"train": "~/text.txt"}},
        {"auxiliary": {"dapt": {"path": "~/text.txt"}}},
        {"auxiliary": {"aang": {"data": {"domain": {"path": "~/text.txt"}}}}},
    ],
)
def test_text_that_is_newer_is_named_wherever_it_stands(options, finished, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    text = tmp_path / "text.txt"
    text.write_text("text")
    config = OmegaConf.create(options)
    os.utime(text, (0, 0))
    assert newer_data(config, finished) == []
    os.utime(text, (2**33, 2**33))
    assert newer_data(config, finished) == [text]


@pytest.mark.parametrize("begun_with", ["inputs.json", "config.yaml"])
def test_a_run_that_starts_over_takes_no_folder_in_which_one_was_begun(begun_with, tmp_path):
    for name in ("run", "run-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.log").touch()
    assert fresh_folder(tmp_path / "run") == tmp_path / "run"
    for name in ("run", "run-2"):
        (tmp_path / name / begun_with).touch()
    assert fresh_folder(tmp_path / "run") == tmp_path / "run-3"


def test_the_folder_of_a_run_that_ended_before_it_began_is_not_kept(tmp_path, monkeypatch):
    run = tmp_path / "runs" / "a"
    (run / ".hydra").mkdir(parents=True)
    for name in (".hydra/config.yaml", "run.log", LOCK, "mine.txt"):
        (run / name).touch()
    remove_unbegun(run)
    assert (run / "mine.txt").exists()
    (run / "mine.txt").unlink()
    with monkeypatch.context() as patch:
        patch.chdir(run)
        remove_unbegun(run)
    assert run.exists()
    for _ in range(2):
        remove_unbegun(run)
        assert not run.exists()
    assert run.parent.is_dir()
