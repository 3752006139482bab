"""A run's folder: its name, one process at a time, the same command only, no stranger's code."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from omegaconf import OmegaConf

import tartan.runs.run
from tartan.errors import BusyError, UserError
from tartan.runs.folder import (
    LOCK,
    check_same_inputs,
    command_of,
    exclusive_run,
    run_name,
)
from tartan.runs.result import stored_result
from tests.conftest import ROOT
from tests.in_process import config_of, toy
from tests.programs import called_for_text
from tests.runs.small_result import SMALL, small_result

CONFIG = {"seed": 0, "cache_dir": "/a", "encoder": {"name": "tiny"}, "lr": "${seed}", "run": {}}
LONG = [f"task.{split}=/home/someone/with/a/long/path/to/{split}.jsonl" for split in "abcdef"]


def name(*overrides, task="toy", method="finetune", seed=0) -> str:
    return run_name(overrides, task, method, seed)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["+experiment=acl_arc_meta"], "acl_arc_meta/seed=0"),
        ([], "toy_finetune/seed=0"),
        (["b=1", "seed=0", "a=2", "b=3"], "toy_finetune/a=2,b=3,seed=0"),
        (["data_dir=/x", "num_workers=2", "~logger.csv", "run.stage=x"], "toy_finetune/seed=0"),
        (["a=${.b}"], "toy_finetune/a=-.b-,seed=0"),
        (["task.train=../../etc/x"], "toy_finetune/seed=0,task.train=..-..-etc-x"),
    ],
)
def test_the_name_lists_what_changes_the_training_and_the_seed(overrides, expected):
    assert name(*overrides) == expected
    assert run_name(OmegaConf.create({"task": overrides}).task, "toy", "finetune", 0) == expected


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (
            ["+experiment=custom", "auxiliary.dapt.path='my texts/'", "encoder=minilm",
             "task.train=data/labels.csv"],
            "custom/labels-my-texts-minilm-seed3-[0-9a-f]{6}",
        ),
        (["task.test_share=0.34", *LONG[:3]], "toy_finetune/a-b-c-0.34-seed3-[0-9a-f]{6}"),
        (["x=Grüße 'an' \"alle\" & $HOME; `x` | * and more of it"], "toy_finetune/[A-Za-z0-9.-]+"),
    ],
)  # fmt: skip
def test_a_long_name_has_the_values_and_a_digest(overrides, expected):
    found = name(*overrides, seed=3)
    assert re.fullmatch(expected, found)
    assert len(found.partition("/")[2]) <= 50


def test_long_names_differ_where_options_or_seeds_do():
    names = {name(*LONG, f"zzz={value}", seed=seed) for value in range(50) for seed in range(2)}
    assert len(names) == 100
    assert name(*LONG, "zzz=1") == name("zzz=1", *LONG)


def test_a_command_says_where_configs_and_runs_are():
    sources = [
        {"provider": "hydra", "path": "hydra.conf", "schema": "pkg"},
        {"provider": "command-line", "path": "/my conf", "schema": "file"},
    ]
    given = ["hydra.searchpath=[file://here]", "hydra.mode=MULTIRUN", "hydra.sweep.dir=runs/a"]
    overrides = {"hydra": given, "task": ["seed=1", "c=${oc.env:NO}"]}
    hydra = {"runtime": {"config_sources": sources}, "overrides": overrides}
    for settings in (hydra, OmegaConf.create(hydra)):
        assert shlex.split(command_of(settings)) == [
            *("tartan", "run", "--config-dir=/my conf", "seed=1", "c=${oc.env:NO}"),
            *("hydra.searchpath=[file://here]", "hydra.sweep.dir=runs/a"),
        ]


@pytest.fixture
def finished(tmp_path):
    """The folder of a finished run of `CONFIG`."""
    OmegaConf.save(OmegaConf.create(CONFIG), tmp_path / "config.yaml", resolve=True)
    (tmp_path / "result.json").write_text(json.dumps(SMALL))
    return tmp_path


def test_a_run_where_another_is_running_is_refused(tmp_path, data_dir, cache_dir, monkeypatch):
    config = config_of(toy(data_dir, cache_dir, "finetune"))
    with exclusive_run(tmp_path):
        with pytest.raises(BusyError, match=r"another process is running in .*hydra\.run\.dir"):
            tartan.runs.run.run_experiment(config, tmp_path)
        assert not (tmp_path / "config.yaml").exists()
        monkeypatch.setenv("LOCAL_RANK", "1")
        with exclusive_run(tmp_path):  # a process of the same run
            pass


@pytest.mark.parametrize("place", [LOCK, "classifier", "checkpoints/a.part"])
def test_nothing_is_written_through_a_link_out_of_the_folder(place, tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (tmp_path / "precious").write_text("precious")
    (run / place).symlink_to(tmp_path / "precious")
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


@pytest.mark.parametrize("name", ["config.yaml", "result.json", "inputs.json"])
@pytest.mark.parametrize(
    "content",
    ["{torn", "[1]", "[" * 200_000, "a: &a [1, 2]\nb: &b [*a, *a]\nc: [*b, *b]\n"],
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
