"""Checksums of files, and what is no file."""

from __future__ import annotations

import pytest

from src.errors import UserError
from src.files.checksum import sha256_of


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"nothing cannot be read \(No such file or directory\)$"):
        sha256_of(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\)$"):
        sha256_of(tmp_path)
