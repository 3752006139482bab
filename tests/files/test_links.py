"""Links that lead out of a folder are found, whatever they are called and wherever they lie."""

from __future__ import annotations

import os

import pytest

from tartan.errors import UserError
from tartan.files import links
from tartan.files.links import check_written_folder, is_inside


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "folder" / "own").touch()
    return tmp_path / "folder"


def test_a_folder_without_links_or_with_links_into_itself_passes(folder):
    (folder / "link").symlink_to("own")
    (folder / "deep" / "link").symlink_to(folder / "own")
    (folder / "itself").symlink_to("itself")
    check_written_folder(folder)
    check_written_folder(folder / "not there")


@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("link", "../elsewhere"),
        ("link", "/etc/hostname"),
        ("link", "../not there"),
        ("link", ".."),
        ("deep/link", "../../elsewhere"),
        ("deep/link", "/etc"),
    ],
)
def test_a_link_that_leads_elsewhere_is_named(folder, place, target):
    (folder / place).symlink_to(target)
    assert not is_inside(folder / place, folder)
    with pytest.raises(UserError, match=rf"{place} is a link to {target}, outside of .*/folder"):
        check_written_folder(folder)


def test_a_folder_that_is_itself_reached_by_a_link_passes(folder, tmp_path):
    (tmp_path / "short").symlink_to(folder)
    (folder / "link").symlink_to("own")
    check_written_folder(tmp_path / "short")


def test_only_the_blobs_of_the_hubs_cache_count_as_inside(tmp_path):
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir()
    (blobs / "0a").touch()
    (snapshot / "config.json").symlink_to("../../blobs/0a")
    (snapshot / "other.json").symlink_to("../../../other")
    assert is_inside(snapshot / "config.json", snapshot)
    assert not is_inside(snapshot / "other.json", snapshot)
    (blobs / "0a").unlink()
    blobs.rmdir()
    blobs.symlink_to("/")
    (snapshot / "passwd").symlink_to("/etc/passwd")
    assert not is_inside(snapshot / "passwd", snapshot)


def test_a_file_that_another_process_removes_meanwhile_is_passed_over(folder, monkeypatch):
    gone = [folder / "result.json.part", *links.paths_in(folder)]
    monkeypatch.setattr(links, "paths_in", lambda _: gone)
    check_written_folder(folder)


@pytest.mark.parametrize("place", ["pipe", "deep/pipe"])
def test_a_pipe_is_named_before_anything_waits_for_it(place, folder):
    os.mkfifo(folder / place)
    with pytest.raises(UserError, match=rf"{place} is neither a file nor a folder; remove it"):
        check_written_folder(folder)
