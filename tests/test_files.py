"""Files are whole or not there, and what lies in foreign folders harms nothing."""

from __future__ import annotations

import os
import socket
import time

import pytest

from tartan.errors import UserError
from tartan.files import (
    check_reachable,
    check_written_folder,
    is_inside,
    process_lock,
    read_yaml,
    write_durably,
)
from tests.local_server import answering, closed_address, serving


@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), ValueError(), RuntimeError(), KeyboardInterrupt()]
)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(error, tmp_path):
    path = tmp_path / "file"
    write_durably(path, lambda scratch: scratch.write_text("old"))

    def fail(scratch):
        scratch.write_text("half of the n")
        raise error

    with pytest.raises(type(error)):
        write_durably(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_file_elsewhere_is_not_written_through_a_link(tmp_path):
    (tmp_path / "other").write_text("precious")
    for name in ("file", "file.part"):
        (tmp_path / name).symlink_to("other")
    write_durably(tmp_path / "file", lambda scratch: scratch.write_text("new"))
    assert (tmp_path / "other").read_text() == "precious"
    assert (tmp_path / "file").read_text() == "new"
    assert not (tmp_path / "file").is_symlink()


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
        ("link", "../not there"),
        ("link", ".."),
        ("deep/link", "/etc"),
    ],
)
def test_a_link_that_leads_elsewhere_is_named(folder, place, target):
    (folder / place).symlink_to(target)
    assert not is_inside(folder / place, folder)
    with pytest.raises(UserError, match=rf"{place} is a link out of .*/folder"):
        check_written_folder(folder)


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


def test_a_pipe_is_named_before_anything_waits_for_it(folder):
    os.mkfifo(folder / "deep" / "pipe")
    with pytest.raises(UserError, match=r"deep/pipe is neither a file nor a folder; remove it"):
        check_written_folder(folder)


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 101 + "]" * 101, "[" * 10**6, "- " * 5000 + "1"],
    ids=["one too deep", "lists", "blocks"],
)
def test_yaml_that_is_nested_too_deeply_is_one_line(text, tmp_path):
    """The parser takes quadratic time for a million brackets."""
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match=r"^a\.yaml: lists and mappings are nested more than 100"):
        read_yaml(tmp_path / "a.yaml")


def test_a_lock_is_held_by_one_and_let_go_of(tmp_path):
    lock = tmp_path / "new" / "a.lock"
    for _ in range(2):
        with process_lock(lock, "busy"):
            assert lock.exists()
            with pytest.raises(UserError, match=r"^busy$"), process_lock(lock, "busy"):
                pytest.fail("two hold it")
    with pytest.raises(KeyError), process_lock(lock, "busy"):
        raise KeyError
    with process_lock(lock, "busy"):
        pass


@pytest.mark.parametrize("kind", ["closed", "silent", "no HTTP", "no address", "offline"])
def test_a_server_that_does_not_answer_fails_within_seconds_and_names_the_alternatives(
    kind, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "YES" if kind == "offline" else "0")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("tartan.files.CONNECT_TIMEOUT_S", 0.3)
    start = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent, answering(b"SSH-2.0\r\n") as other:
        address = {
            "closed": closed_address(),
            "silent": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "no HTTP": other,
        }.get(kind, "hub.example.org")
        with pytest.raises(UserError, match="encoder big-one: ") as caught:
            check_reachable(address, "encoder big-one")
    assert time.monotonic() - start < 6
    for words in ("encoder=minilm", "task=docstrings", "data_dir="):
        assert words in str(caught.value)


def test_a_server_that_answers_is_reachable(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with serving(tmp_path) as address:
        check_reachable(f"{address}/nothing", "a file")
