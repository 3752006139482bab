"""Names the options that tell settings, or data, from others of the same name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

_SHOWN = 3
"""Number of differing options that are shown where fewer would tell apart."""
_PLAIN = {"True": "true", "False": "false", "None": "null"}


def differing_values(options: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of the options that differ, by name; None where one is absent."""
    rows = {name: [one.get(name) for one in options] for name in sorted(set().union(*options))}
    return {name: row for name, row in rows.items() if any(value != row[0] for value in row)}


def words_apart(
    options: Sequence[Mapping[str, Any]],
    *,
    first: tuple[str, ...] = (),
    last: tuple[str, ...] = (),
    more: bool = True,
) -> list[str]:
    """Return, for each set of options, those that tell it from the others: `lr=0.1, steps=3`.

    As many are shown as it takes to tell all apart; where nothing does, words are empty or equal.

    Args:
        options: the options by name.
        first: ends of names that are preferred, in order.
        last: beginnings of names that are shown only where no others tell apart.
        more: whether some differing options that need not be shown are shown too.
    """
    rows = differing_values(options)
    ordered = sorted(rows, key=lambda name: (name.startswith(last), _rank(name, first), name))
    telling: list[str] = []
    found = [""] * len(options)
    for name in ordered:
        finer = [f"{one}, {value!r}" for one, value in zip(found, rows[name], strict=True)]
        if len(set(finer)) > len(set(found)):
            telling.append(name)
            found = finer
    others = [n for n in ordered if more and n not in telling and not n.startswith(last)]
    shown = telling + others[: max(0, _SHOWN - len(telling))]
    end = [", ..."] if len(shown) < len(telling + others) else []
    names = {name: _short(name, rows) for name in shown}
    values = {name: _words(rows[name]) for name in shown}
    return [
        "".join([", ".join(f"{names[n]}={values[n][i]}" for n in shown if n in own), *end])
        for i, own in enumerate(options)
    ]


def short_paths(paths: Iterable[str]) -> dict[str, str]:
    """Return each path's end by which it differs from the other paths, e.g. its last part."""
    parts = {path: PurePosixPath(path).parts for path in paths}

    short = {}
    for path, own in parts.items():
        ends = (own[-count:] for count in range(1, len(own)))
        alone = (e for e in ends if sum(p[-len(e) :] == e for p in parts.values()) == 1)
        short[path] = next(("/".join(end) for end in alone), path)
    return short


def shortened(labels: Sequence[str], longest: int) -> list[str]:
    """Return labels of at most `longest` characters, different ones for different labels.

    Long ones are cut in their middle: labels that begin alike often differ at the end.
    """
    half = longest // 2
    cut = [one if len(one) <= longest else f"{one[: half - 1]}…{one[-half:]}" for one in labels]
    return [
        one if cut.count(one) == 1 else f"{one[: longest - 7]}… [{number}]"
        for number, one in enumerate(cut, 1)
    ]


def _rank(name: str, ends: tuple[str, ...]) -> int:
    return next((place for place, end in enumerate(ends) if name.endswith(end)), len(ends))


def _short(name: str, names: Iterable[str]) -> str:
    """Return the end of a dotted name, of two parts or more, that no other name has."""
    parts = name.split(".")
    ends = [".".join(parts[-count:]) for count in range(2, len(parts) + 1)]
    alone = (e for e in ends if sum(f".{one}".endswith(f".{e}") for one in names) == 1)
    return next(alone, name)


def _words(values: Sequence[Any]) -> list[str]:
    """Return an option's values as they are given on the command line, paths by their ends."""
    paths = short_paths({value for value in values if isinstance(value, str) and "/" in value})
    return [
        paths.get(value, value) if isinstance(value, str) else _PLAIN.get(repr(value), str(value))
        for value in values
    ]
