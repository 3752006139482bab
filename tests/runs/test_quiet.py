"""Warnings name what was read from files, and nothing of that commands the terminal."""

from __future__ import annotations

import logging

import pytest

from tartan.runs.command_line import quiet_libraries


@pytest.fixture(autouse=True)
def _records():
    before = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(before)


def test_a_warning_that_names_a_strangers_file_does_not_command_the_terminal(caplog):
    quiet_libraries()
    logging.getLogger("tartan").warning("left out: %s", "\x1b]0;owned\x07")
    assert caplog.messages == ["left out: \\x1b]0;owned\\x07"]
    assert "\x1b" not in caplog.text
