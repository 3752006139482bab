"""A build that is killed at any moment, or finds the disk full, ends as one that never was."""

from __future__ import annotations

import os
import sys

import pytest

from tests.corpus.made_up import Killed, built, contents, write_articles

pytestmark = pytest.mark.slow

EVENTS = {"open": 0, "os.rename": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0}
"""What is done to a file, with the argument that names it."""


class Moments:
    """Counts what is done to files below a folder, and kills at one of these moments."""

    def __init__(self) -> None:
        self.folder, self.left = "", -1
        sys.addaudithook(self._look)

    def _look(self, event, arguments):
        if not self.folder or event not in EVENTS:
            return
        path = arguments[EVENTS[event]]
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self.folder):
            self.left -= 1
            if self.left < 0:
                self.folder = ""
                raise Killed

    def kill(self, folder, after, work):
        """Whether `work` was killed, after so many moments."""
        self.folder, self.left = str(folder), after
        try:
            work()
        except Killed:
            return True
        finally:
            self.folder = ""
        return False


@pytest.fixture(scope="module")
def moments():
    return Moments()  # a hook cannot be removed; without a folder it does nothing


@pytest.fixture(scope="module")
def articles(tmp_path_factory):
    return write_articles(tmp_path_factory.mktemp("articles") / "in", articles=10)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    """So few examples a batch and a range that small corpora have several."""
    monkeypatch.setattr("tartan.corpus.steps.ROWS", 7)


def test_a_build_that_is_killed_at_any_file_ends_as_one_that_never_was(articles, tmp_path, moments):
    built(articles, tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    for kills in range(1000):
        output = tmp_path / f"killed-{kills}"
        work = lambda to=output: built(articles, to)  # noqa: E731
        if not moments.kill(output, kills * 13, work):
            break
        work()
        assert contents(output) == whole
    assert kills > 5
