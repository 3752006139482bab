"""A command ends with one line."""

from __future__ import annotations

import pytest

from tartan.run_folder.stop import stop


def test_the_reason_is_one_line_and_the_exit_code_1(capsys):
    with pytest.raises(SystemExit, match="1"):
        stop("no")
    assert capsys.readouterr().err == "error: no\n"
