"""Files are whole or not there."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from tartan.errors import UserError
from tartan.files.checksum import is_whole
from tartan.files.durable import (
    disk_advice,
    remove,
    write_durably,
    write_with_checksum,
)
from tests.conftest import ROOT


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


def test_a_file_counts_only_with_its_checksum(tmp_path):
    path = tmp_path / "file"
    write_durably(path, lambda scratch: scratch.write_text("content"))
    assert not is_whole(path)
    write_with_checksum(path, lambda scratch: scratch.write_text("content"))
    assert is_whole(path)
    path.write_text("Content")
    assert not is_whole(path)
    assert not is_whole(tmp_path / "nothing")


def test_what_is_removed_is_gone_with_its_checksum(tmp_path):
    path = tmp_path / "file"
    write_with_checksum(path, lambda scratch: scratch.write_text("content"))
    remove(path)
    assert list(tmp_path.iterdir()) == []
    remove(path)


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
        "from tartan.files.durable import disk_advice, write_durably\n"
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
