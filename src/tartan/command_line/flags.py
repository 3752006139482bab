"""Lets flags stand anywhere among the options, and `debug=` also before the experiment."""

from __future__ import annotations

from collections.abc import Sequence

from hydra._internal.utils import get_args_parser

_FLAGS = [action for action in get_args_parser()._actions if action.option_strings]
_KNOWN = {flag for action in _FLAGS for flag in action.option_strings}
_ALONE = ("-m", "--multirun", "--resolve")
"""Flags without a value that are moved to the front."""
_WITH_VALUE = tuple(f for action in _FLAGS if action.nargs is None for f in action.option_strings)
"""Flags whose value is the next argument, or stands behind `=`."""


def unknown_flag(arguments: Sequence[str]) -> str | None:
    """Return the first `--NAME` that Hydra does not have: argparse may take it for another flag."""
    names = [argument.partition("=")[0] for argument in arguments]
    return next((name for name in names if name.startswith("--") and name not in _KNOWN), None)


def flags_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with Hydra's flags in front: argparse divides no list of options.

    `--info`, whose value may be left out, and flags that are not known stay where they are.
    """
    flags: list[str] = []
    others: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument in _ALONE or argument.startswith(tuple(f"{flag}=" for flag in _WITH_VALUE)):
            flags.append(argument)
        elif argument in _WITH_VALUE and rest and not rest[0].startswith("-"):
            flags += [argument, rest.pop(0)]
        else:
            others.append(argument)
    return flags + others


def debug_after_experiment(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `debug=` behind the experiment, over whose options it has to win.

    Of two groups that choose an encoder Hydra takes the later one's.
    """
    debug = [a for a in arguments if a.lstrip("+").startswith("debug=")]
    others = [a for a in arguments if a not in debug]
    places = [i for i, a in enumerate(others, 1) if a.lstrip("+").startswith("experiment=")]
    if not places:
        return list(arguments)
    return [*others[: places[-1]], *debug, *others[places[-1] :]]
