"""Flags may stand anywhere among the options."""

from __future__ import annotations

import sys

import pytest
from hydra._internal.utils import get_args_parser

from tartan.command_line.flags import debug_after_experiment, flags_first, unknown_flag
from tartan.command_line.hydra_errors import run_command_line


@pytest.mark.parametrize(
    ("given", "sorted_"),
    [
        ("a=1 -m seed=0,1", "-m a=1 seed=0,1"),
        ("a=1 seed=0,1 --multirun", "--multirun a=1 seed=0,1"),
        ("a=1 --config-dir mine -m b=2", "--config-dir mine -m a=1 b=2"),
        ("a=1 --config-dir=mine b=2 -cd x=y", "--config-dir=mine -cd x=y a=1 b=2"),
        ("a=1 --cfg job b=2 --resolve", "--cfg job --resolve a=1 b=2"),
        ("-m a=1 b=-m", "-m a=1 b=-m"),
        ("a=1 --info defaults-tree", "a=1 --info defaults-tree"),
        ("a=1 --info", "a=1 --info"),
        ("a=1 --help", "a=1 --help"),
        ("a=1 --config-dir", "a=1 --config-dir"),
        ("a=1 --config-dir -m", "-m a=1 --config-dir"),
        ("", ""),
    ],
)
def test_they_are_put_before_the_options(given, sorted_):
    assert flags_first(given.split()) == sorted_.split()


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ("+debug=fast +experiment=b seed=1", "+experiment=b +debug=fast seed=1"),
        ("-m debug=fast seed=0,1 experiment=b", "-m seed=0,1 experiment=b debug=fast"),
        ("+experiment=b +debug=fast --info", "+experiment=b +debug=fast --info"),
        ("+debug=fast task=a --info", "+debug=fast task=a --info"),
    ],
)
def test_debug_is_put_behind_the_experiment(given, ordered):
    assert debug_after_experiment(given.split()) == ordered.split()


@pytest.mark.slow
def test_debug_before_an_experiment_takes_the_tiny_encoder(run_cli):
    shown = run_cli("+debug=fast", "+experiment=acl_arc_meta", "--cfg", "job", timeout=60)
    assert "\nencoder:\n  _target_: tartan.encoders.tiny" in shown.stdout


def test_every_command_takes_them_so(monkeypatch):
    for name in ("HYDRA_FULL_ERROR", "TARTAN_ONE_LINE_ERRORS"):  # which it sets
        monkeypatch.setenv(name, "1")
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", ["run", "experiment=a", "--config-dir", "b", "-m", "seed=0,1"])
    seen = []
    run_command_line(lambda: seen.extend(sys.argv[1:]))
    assert seen == ["--config-dir", "b", "-m", "+experiment=a", "seed=0,1"]


@pytest.mark.slow
def test_a_sweep_may_be_appended_to_a_command(run_cli):
    options = ["encoder=tiny", "task=digits", "micro_batch_size=0"]
    finished = run_cli(*options, "-m", "seed=0,1")
    assert "unrecognized" not in finished.stderr
    assert "job 1: " in finished.stdout
    shown = run_cli(*options, "--cfg", "job", "seed=7", timeout=60)
    assert shown.returncode == 0
    assert "\nseed: 7\n" in f"\n{shown.stdout}"


@pytest.mark.parametrize(
    ("given", "unknown"),
    [
        ("a=1 --experiment x", "--experiment"),
        ("--batch-size=8 --lr 1", "--batch-size"),
        ("-m --cfg job --resolve --info=all --help a=--b", None),
        ("--config-dir=mine --multirun --experimental-rerun a.pickle", None),
    ],
)
def test_what_is_no_flag_is_found(given, unknown):
    assert unknown_flag(given.split()) == unknown


def test_every_long_flag_of_hydra_is_known():
    parser = get_args_parser()
    long = [f for action in parser._actions for f in action.option_strings if f.startswith("--")]
    assert len(long) > 10
    assert unknown_flag(long) is None
