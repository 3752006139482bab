"""The error of an option that does not exist names it, and what to do."""

from __future__ import annotations

import pickle

from tartan.configuration.unknown_option import UnknownOptionError


def test_it_says_what_is_meant_or_to_leave_it_out():
    meant = UnknownOptionError("task.trian", "; did you mean task.train?")
    assert str(meant) == "there is no option task.trian; did you mean task.train?"
    assert str(UnknownOptionError("weighting.eta")) == (
        "there is no option weighting.eta; leave it out"
    )


def test_it_passes_between_processes():
    error = UnknownOptionError("task.trian", "; did you mean task.train?")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.option, again.instead) == (str(error), error.option, error.instead)
