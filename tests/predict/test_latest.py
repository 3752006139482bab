"""Which run is the latest."""

from __future__ import annotations

import os

import pytest

from tartan.errors import UserError
from tartan.predict.latest import latest_run, newer_unfinished


def run(folder, second, *, classifier=True, finished=True):
    folder.mkdir(parents=True)
    if classifier:
        (folder / "classifier").mkdir()
    if finished:
        (folder / "result.json").write_text("{}")
        os.utime(folder / "result.json", (second, second))
    return folder


def test_the_run_that_ended_last_is_taken(tmp_path):
    run(tmp_path / "custom" / "seed=0", 1000)
    last = run(tmp_path / "a sweep" / "deep" / "seed=1", 3000)
    run(tmp_path / "custom" / "seed=2", 2000)
    run(tmp_path / "custom" / "seed=3", 4000, classifier=False)
    run(tmp_path / "custom" / "seed=4", 5000, finished=False)
    assert latest_run(tmp_path) == last


def test_what_is_in_hidden_folders_is_no_run(tmp_path):
    last = run(tmp_path / "custom" / "seed=0", 1000)
    run(tmp_path / ".pilot-compare" / "compare_tapt" / "seed0", 3000)
    run(tmp_path / ".pilot-compare" / "compare_dapt" / "seed0", 3000, finished=False)
    assert latest_run(tmp_path) == last
    assert newer_unfinished(last, tmp_path) is None


def test_no_run_is_one_line(tmp_path):
    run(tmp_path / "custom" / "seed=3", 4000, classifier=False)
    for runs in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match="model=latest: no finished run with a classifier bel"):
            latest_run(runs)


def test_a_newer_run_that_is_unfinished_is_found(tmp_path):
    finished = run(tmp_path / "custom" / "seed=0", 3000)
    for seed, began in ((1, 2000), (2, 5000), (3, 4000)):
        folder = run(tmp_path / "custom" / f"seed={seed}", 0, classifier=False, finished=False)
        (folder / "config.yaml").write_text("seed: 0")
        os.utime(folder / "config.yaml", (began, began))
    assert newer_unfinished(finished, tmp_path) == tmp_path / "custom" / "seed=2"
    again = finished / ".hydra"  # the command of the finished run was given again
    again.mkdir()
    (again / "config.yaml").write_text("seed: 0")
    os.utime(again / "config.yaml", (6000, 6000))
    assert newer_unfinished(finished, tmp_path) == tmp_path / "custom" / "seed=2"
    for seed in (2, 3):
        (tmp_path / "custom" / f"seed={seed}" / "result.json").write_text("{}")
    assert newer_unfinished(finished, tmp_path) is None
