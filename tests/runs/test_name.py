"""The run folder's name: the same command, the same folder; another one, another folder."""

from __future__ import annotations

import re
import shlex

import pytest
from omegaconf import OmegaConf

from tartan.runs.name import command_of, places_of, run_name


def name(*overrides, task="toy", method="finetune", seed=0) -> str:
    return run_name(overrides, task, method, seed)


def test_an_experiment_names_the_folder():
    assert name("+experiment=acl_arc_meta") == "acl_arc_meta/seed=0"


def test_interpolations_are_named_as_they_were_given():
    given = ["a=${.b}", "c=${oc.env:NO_SUCH_VARIABLE}"]
    found = run_name(OmegaConf.create({"task": given}).task, "toy", "finetune", 0)
    assert found == name(*given)
    assert command_of(OmegaConf.create(given)).endswith("'a=${.b}' 'c=${oc.env:NO_SUCH_VARIABLE}'")


SOURCES = [
    {"provider": "hydra", "path": "hydra.conf", "schema": "pkg"},
    {"provider": "command-line", "path": "/my conf", "schema": "file"},
    {"provider": "main", "path": "/checkout/conf", "schema": "file"},
]


@pytest.mark.parametrize("wrapped", [dict, OmegaConf.create])
def test_a_command_says_where_configs_and_runs_are(wrapped):
    given = ["hydra.searchpath=[file://here]", "hydra.mode=MULTIRUN", "hydra.sweep.dir=runs/a"]
    hydra = wrapped({"runtime": {"config_sources": SOURCES}, "overrides": {"hydra": given}})
    command = command_of(["seed=1", "lr=2"], places_of(hydra))
    assert shlex.split(command) == [
        *("tartan", "run", "--config-dir=/my conf", "seed=1", "lr=2"),
        *("hydra.searchpath=[file://here]", "hydra.sweep.dir=runs/a"),
    ]


@pytest.mark.parametrize(
    "hydra",
    [
        None,
        [],
        {"runtime": 3, "overrides": []},
        {"runtime": {"config_sources": [1, {"provider": "command-line", "path": 2}]}},
        {"overrides": {"hydra": [4]}},
    ],
)
def test_settings_of_any_content_are_read(hydra):
    assert places_of(hydra) == []


def test_without_an_experiment_task_and_method_do():
    assert name(task="acl_arc", method="tapt") == "acl_arc_tapt/seed=0"


def test_what_differs_from_the_experiment_is_in_the_name():
    found = name("+experiment=acl_arc_meta", "auxiliary.size=10", "seed=1", seed=1)
    assert found == "acl_arc_meta/auxiliary.size=10,seed=1"


def test_the_order_of_the_options_does_not_matter():
    assert name("b=1", "seed=2", "a=2", seed=2) == name("a=2", "b=1", seed=2)


def test_the_seed_is_always_in_the_name():
    assert name() == name("seed=0")
    assert name() != name("seed=1", seed=1)


def test_of_an_option_given_twice_the_last_counts():
    assert name("a=1", "a=2") == name("a=2")


@pytest.mark.parametrize(
    "option",
    [
        "data_dir=/x",
        "cache_dir=/x",
        "num_workers=2",
        "logger=none",
        "+logger.csv.flush=1",
        "~logger.tensorboard",
        "hydra.verbose=true",
        "run.stage=x",
    ],
)
def test_where_things_are_and_how_they_are_shown_is_not_in_the_name(option):
    assert name(option) == name()


@pytest.mark.parametrize("option", ["data_dir_of_mine=1", "task.data_dir=1", "runs=1"])
def test_only_these_options_are_left_out(option):
    assert name(option) != name()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("encoder=tiny", "encoder=minilm"),
        ("weighting.eta=0.1", "weighting.eta=0.01"),
        ("+a=1", "+b=1"),
        ("task.train=/x/a.jsonl", "task.train=/x/b.jsonl"),
    ],
)
def test_other_options_name_another_folder(first, second):
    assert name(first) != name(second)


LONG = [f"task.{split}=/home/someone/with/a/long/path/to/{split}.jsonl" for split in "abcdef"]


def test_a_name_fits_into_a_file_system():
    experiment, _, folder = name("+experiment=x", *LONG).partition("/")
    assert experiment == "x"
    assert len(folder.encode()) <= 50


def test_a_long_name_has_the_values_and_a_digest():
    own = name(
        "+experiment=custom",
        "auxiliary.dapt.path='my texts/'",
        "encoder=minilm",
        "task.train=data/labels.csv",
        "seed=3",
        seed=3,
    )
    assert re.fullmatch("custom/labels-my-texts-minilm-seed3-[0-9a-f]{6}", own)


SHARES = [*LONG[:2], "weighting.eta=1.0e-3", "+x=[0.1,0.25]"]


@pytest.mark.parametrize("share", ["0.34", "0.334"])
def test_fractions_of_a_long_name_are_whole(share):
    assert name(f"task.test_share={share}", *LONG[:3]).startswith(f"toy_finetune/a-b-c-{share}-")
    own = name(*SHARES).partition("/")[2]
    assert re.fullmatch("a-b-1.0e-3-0.1-0.25-seed0-[0-9a-f]{6}", own)


def test_long_names_differ_where_the_options_do():
    names = {name(*LONG, f"zzz={value}") for value in range(50)}
    assert len(names) == 50
    assert name(*LONG, "zzz=1") == name("zzz=1", *LONG)


def test_long_names_differ_by_seed():
    assert name(*LONG, "seed=1", seed=1) != name(*LONG, "seed=2", seed=2)


@pytest.mark.parametrize(
    "option",
    [
        "task.train=../../etc/x",
        "weighting.values={end_task: 2, dapt: 1}",
        "encoder.name=FacebookAI/roberta-base",
        "+auxiliary_task@auxiliary.news=mlm_domain",
        "text=Grüße 'an' \"alle\" & $HOME; `x` | *",
    ],
)
def test_a_name_is_one_folder_below_one_folder_in_plain_characters(option):
    experiment, *rest = name(option).split("/")
    assert experiment == "toy_finetune"
    (folder,) = rest
    assert set(folder) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+=,@-"
    )
    assert ".." not in (experiment, folder)
