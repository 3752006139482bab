"""The run folder's name: the same command, the same folder; another one, another folder."""

from __future__ import annotations

import re
import shlex

import pytest
from omegaconf import OmegaConf

from tartan.runs.name import command_of, places_of, run_name

LONG = [f"task.{split}=/home/someone/with/a/long/path/to/{split}.jsonl" for split in "abcdef"]


def name(*overrides, task="toy", method="finetune", seed=0) -> str:
    return run_name(overrides, task, method, seed)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["+experiment=acl_arc_meta"], "acl_arc_meta/seed=0"),
        ([], "toy_finetune/seed=0"),
        (["b=1", "seed=0", "a=2"], "toy_finetune/a=2,b=1,seed=0"),
        (["a=1", "a=2"], "toy_finetune/a=2,seed=0"),
        (["data_dir=/x", "num_workers=2", "~logger.csv", "run.stage=x"], "toy_finetune/seed=0"),
        (["task.data_dir=1"], "toy_finetune/seed=0,task.data_dir=1"),
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
        (
            [*LONG[:2], "weighting.eta=1.0e-3", "+x=[0.1,0.25]"],
            "toy_finetune/a-b-1.0e-3-0.1-0.25-seed3-[0-9a-f]{6}",
        ),
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


@pytest.mark.parametrize("wrapped", [dict, OmegaConf.create])
def test_a_command_says_where_configs_and_runs_are(wrapped):
    sources = [
        {"provider": "hydra", "path": "hydra.conf", "schema": "pkg"},
        {"provider": "command-line", "path": "/my conf", "schema": "file"},
    ]
    overrides = ["hydra.searchpath=[file://here]", "hydra.mode=MULTIRUN", "hydra.sweep.dir=runs/a"]
    hydra = wrapped({"runtime": {"config_sources": sources}, "overrides": {"hydra": overrides}})
    assert shlex.split(command_of(["seed=1", "c=${oc.env:NO}"], places_of(hydra))) == [
        *("tartan", "run", "--config-dir=/my conf", "seed=1", "c=${oc.env:NO}"),
        *("hydra.searchpath=[file://here]", "hydra.sweep.dir=runs/a"),
    ]


@pytest.mark.parametrize(
    "hydra",
    [
        None,
        {"runtime": 3, "overrides": []},
        {"runtime": {"config_sources": [1, {"provider": "command-line", "path": 2}]}},
        {"overrides": {"hydra": [4]}},
    ],
)
def test_settings_of_any_content_are_read(hydra):
    assert places_of(hydra) == []
