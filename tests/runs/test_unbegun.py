"""The folder of a run that ended before it began is not kept."""

from __future__ import annotations

import pytest

from tartan.runs.folder import remove_unbegun


@pytest.fixture
def folder(tmp_path):
    """A run folder as Hydra leaves it."""
    (tmp_path / "runs" / "a" / ".hydra").mkdir(parents=True)
    made = tmp_path / "runs" / "a"
    for name in (".hydra/config.yaml", "run.log", "run.lock"):
        (made / name).touch()
    return made


def test_what_hydra_left_is_removed(folder):
    remove_unbegun(folder)
    assert folder.parent.is_dir()
    assert not folder.exists()
    remove_unbegun(folder)


@pytest.mark.parametrize("name", ["config.yaml", "mine.txt"])
def test_what_is_more_stays(folder, name):
    (folder / name).touch()
    before = sorted(folder.rglob("*"))
    remove_unbegun(folder)
    assert sorted(folder.rglob("*")) == before


def test_the_present_folder_stays(folder, monkeypatch):
    monkeypatch.chdir(folder)
    remove_unbegun(folder)
    assert list(folder.iterdir()) == []


def test_a_folder_of_somebody_else_stays(tmp_path):
    (tmp_path / "run.log").touch()
    remove_unbegun(tmp_path)
    assert (tmp_path / "run.log").exists()
