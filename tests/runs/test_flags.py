"""Flags may stand anywhere among the options."""

from __future__ import annotations

import sys

import pytest

from tartan.runs.command_line import run_command_line
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ("a=1 -m seed=0,1", "-m a=1 seed=0,1"),
        ("a=1 --config-dir mine -m b=2", "--config-dir mine -m a=1 b=2"),
        ("a=1 --config-dir=mine b=2 -cd x", "--config-dir=mine -cd x a=1 b=2"),
        ("a=1 --cfg job b=2 --resolve", "--cfg job --resolve a=1 b=2"),
        ("-m a=1 b=-m", "-m a=1 b=-m"),
        ("a=1 --info defaults-tree", "--info defaults-tree a=1"),
        ("+debug=fast +experiment=b seed=1", "+experiment=b +debug=fast seed=1"),
        ("-m debug=fast seed=0,1 experiment=b", "-m seed=0,1 +experiment=b +debug=fast"),
        ("", ""),
    ],
)
def test_flags_come_first_and_debug_behind_the_experiment(given, ordered, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert arguments_of(given, monkeypatch) == ordered.split()


def arguments_of(given, monkeypatch):
    """What Hydra gets of a command line."""
    for name in ("HYDRA_FULL_ERROR", "TARTAN_ONE_LINE_ERRORS"):  # which it sets
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(sys, "argv", ["run", *given.split()])
    seen = []
    run_command_line(lambda: seen.extend(sys.argv[1:]))
    return seen


def test_the_folder_conf_is_found_by_itself(monkeypatch, tmp_path):
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    assert arguments_of("a=1", monkeypatch) == ["--config-dir", "conf", "a=1"]
    assert arguments_of("--config-dir x a=1", monkeypatch) == ["--config-dir", "x", "a=1"]
    monkeypatch.chdir(ROOT)  # where it is the shipped one
    assert arguments_of("a=1", monkeypatch) == ["a=1"]


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
