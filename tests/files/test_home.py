"""The home folder's name stays at home."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tartan.files.home import shell_command, without_home


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


def test_a_command_elsewhere_is_quoted_as_ever():
    arguments = ["python", "-m", "src.run", "task.train=/data/a b.csv"]
    assert shell_command(arguments) == shlex.join(arguments)
