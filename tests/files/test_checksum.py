"""Checksums of files, and what is no file."""

from __future__ import annotations

import os

import pytest

from tartan.errors import UserError
from tartan.files.checksum import check_is_file, sha256_of


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"nothing cannot be read \(No such file or directory\)$"):
        sha256_of(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\)$"):
        sha256_of(tmp_path)


def test_what_is_there_but_no_file_is_not_called_missing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "nothing", "nothing does not exist$"),
        (tmp_path, "is a folder; name a file in it$"),
        (tmp_path / "pipe", r"pipe is no regular file; .* with input=-\)$"),
    ):
        with pytest.raises(UserError, match=said):
            check_is_file(path)
