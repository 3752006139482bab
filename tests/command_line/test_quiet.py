"""Warnings name what was read from files, and nothing of that commands the terminal."""

from __future__ import annotations

import logging

import pytest

from tartan.command_line.quiet import quiet_libraries
from tartan.data.corpus_files import files_of


@pytest.fixture(autouse=True)
def _records():
    before = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(before)


def test_a_warning_that_names_a_strangers_file_does_not_command_the_terminal(tmp_path, caplog):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "\x1b]0;owned\x07").write_text("")
    quiet_libraries()
    files_of(tmp_path)
    (message,) = caplog.messages
    assert message.endswith("are left out: 1 \\x1b]0;owned\\x07")
    assert "\x1b" not in caplog.text
