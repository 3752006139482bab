"""Files are whole or not there, and what lies in foreign folders harms nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
import time

import pytest

from tartan import files as links
from tartan.errors import UserError
from tartan.files import (
    check_is_file,
    check_reachable,
    check_written_folder,
    disk_advice,
    is_inside,
    parse_yaml,
    process_lock,
    read_yaml,
    sha256_of,
    shell_command,
    without_home,
    write_durably,
)
from tests.conftest import ROOT
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


@pytest.mark.parametrize("number", [errno.EROFS, errno.EFBIG])
def test_a_disk_that_takes_no_files_is_named(number, tmp_path):
    with (
        pytest.raises(UserError, match=r"cannot write to .*continue from where it was"),
        disk_advice(tmp_path),
    ):
        raise OSError(number, os.strerror(number), "file")


def test_a_file_beyond_the_limit_is_no_trouble_of_torch(tmp_path):
    """As a process: the limit is its own, and cannot be raised again."""
    code = (
        "import resource, sys, torch, pathlib\n"
        "from tartan.files import disk_advice, write_durably\n"
        "from tartan.errors import UserError\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    with disk_advice(folder):\n"
        "        write_durably(folder / 'a', lambda p: torch.save(torch.zeros(9999), p))\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "cannot write to" in done.stdout, done.stderr
    assert "File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_file_elsewhere_is_not_written_through_a_link(tmp_path):
    (tmp_path / "other").write_text("precious")
    for name in ("file", "file.part"):
        (tmp_path / name).symlink_to("other")
    write_durably(tmp_path / "file", lambda scratch: scratch.write_text("new"))
    assert (tmp_path / "other").read_text() == "precious"
    assert (tmp_path / "file").read_text() == "new"
    assert not (tmp_path / "file").is_symlink()


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"nothing cannot be read \(No such file or directory\)$"):
        sha256_of(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\)$"):
        sha256_of(tmp_path)


def test_what_is_there_but_no_file_is_not_called_missing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "nothing", "does not exist"),
        (tmp_path, "is not a file"),
        (tmp_path / "pipe", "is not a file"),
    ):
        with pytest.raises(UserError, match=f"{said}$"):
            check_is_file(path)


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
    with pytest.raises(UserError, match=rf"{place} is a link out of .*/folder"):
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


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 101 + "]" * 101, "[" * 10**6, "{a: " * 10**5, "- " * 5000 + "1"],
    ids=["one too deep", "lists", "mappings", "blocks"],
)
def test_yaml_that_is_nested_too_deeply_is_one_line(text, tmp_path):
    """The parser takes quadratic time for a million brackets."""
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match=r"^a\.yaml: lists and mappings are nested more than 100"):
        read_yaml(tmp_path / "a.yaml")


def test_yaml_of_a_usual_depth_is_read():
    assert parse_yaml("a: " + "[" * 90 + "]" * 90)["a"] == eval("[" * 90 + "]" * 90)
    assert parse_yaml("\n".join(f"k{i}: {{a: [1, 2]}}" for i in range(500)))["k7"] == {"a": [1, 2]}


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


def test_a_lock_file_that_its_holder_removes_is_not_held_by_who_waited(tmp_path, monkeypatch):
    """Between its opening and its locking: a third process would lock a new file."""
    path, lock = tmp_path / "a.lock", fcntl.flock
    removed = []

    def late(descriptor, operation):
        if not removed:
            removed.append(path.unlink())
        return lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with process_lock(path, "busy"):
        assert removed
        with pytest.raises(UserError, match=r"^busy$"), process_lock(path, "busy"):
            pytest.fail("two hold it")


@pytest.fixture(autouse=True)
def home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/jane")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/jane/a b.csv", "~/a b.csv"),
        ("/home/jane", "~"),
        ("[/home/jane/a, file:///home/jane/b]", "[~/a, file://~/b]"),
        ("/home/janet/a", "/home/janet/a"),
        ("/mnt/home/jane-2", "/mnt/home/jane-2"),
        ("nothing", "nothing"),
    ],
)
def test_it_is_a_tilde(text, shown):
    assert without_home(text) == shown


def test_a_home_that_is_the_root_hides_nothing(monkeypatch):
    monkeypatch.setenv("HOME", "/")
    assert without_home("/a/b") == "/a/b"


def test_a_command_without_it_is_the_same_command():
    arguments = ["echo", "a=/home/jane/it's $x.csv", "/home/jane", "b=c", "x=[/home/jane/y,2]", ""]
    command = shell_command(arguments)
    assert "jane" not in command
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {command}"],
        env={"HOME": "/home/jane", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.split("\n")[:-1] == arguments


@pytest.fixture(autouse=True)
def direct_connection(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("no_proxy", "*")


def test_a_closed_port_fails_within_seconds_and_names_the_alternatives():
    address = closed_address()
    start = time.monotonic()
    with pytest.raises(UserError) as caught:
        check_reachable(address, "encoder big-one")
    assert time.monotonic() - start < 6
    message = str(caught.value)
    for part in ("encoder big-one", address, "encoder=minilm", "task=docstrings", "data_dir="):
        assert part in message
    assert "\n" not in message


def test_a_server_that_never_answers_fails_within_seconds(monkeypatch):
    monkeypatch.setattr("tartan.files.CONNECT_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(UserError, match="no connection"):
            check_reachable(address, "anything")
        assert time.monotonic() - start < 3


def test_a_server_with_the_file_is_reachable(tmp_path):
    (tmp_path / "file").write_text("x")
    with serving(tmp_path) as address:
        check_reachable(f"{address}/file", "a file")


@pytest.mark.parametrize("address", ["hub.example.org", "localhost:8080/hub", ""])
def test_an_address_without_its_beginning_is_one_line(address):
    with pytest.raises(UserError, match=r"a file: .* is no address"):
        check_reachable(address, "a file")


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-something\r\n"])
def test_a_server_that_does_not_speak_http_is_not_reachable(reply):
    with answering(reply) as address, pytest.raises(UserError, match="a file"):
        check_reachable(address, "a file")


@pytest.mark.parametrize("value", ["1", "true", "YES"])
def test_offline_mode_fails_without_a_look_at_the_network(value, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    with serving(tmp_path) as address, pytest.raises(UserError, match="HF_HUB_OFFLINE is set"):
        check_reachable(address, "a file")
