"""Names data and settings such that those that are compared have different names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tartan.core.task_names import parts_of
from tartan.report.labels import (
    NAMED_BY_AUXILIARIES,
    method_label,
    size_label,
    weighting_label,
)
from tartan.report.reading.apart import short_paths, words_apart
from tartan.report.reading.drawn_data import SPLIT_SEED
from tartan.report.reading.read_options import given_corpora, variant_of
from tartan.report.reading.run import Run
from tartan.run_folder.result import Result

_TOLD = ("seed", "task.", "encoder.", "method.name", "classifier.")
"""Beginnings of options that labels show last: names and other options mostly say the same."""
_DECISIVE = (".enabled", ".module")
"""Ends of options that say most of what differs."""
_SPLITS = (
    "task.train", "task.hub", "task.hub_config", "task.dev", "task.test", "task.test_share",
    "task.dev_share", "task.split", "task.labelled", SPLIT_SEED, "task.max_length",
)  # fmt: skip
"""Options that tell data of one task apart, in the order in which they are looked at."""


def data_names(
    groups: Mapping[tuple[str, str, str], Sequence[Run]], drawn: Collection[Run]
) -> dict[tuple[str, str, str], str]:
    """Return what tells data of the same task and encoder apart, by task, encoder and hash.

    It is empty where there is no other such data. The hash is shown where no options tell.

    Args:
        groups: the runs on the same data.
        drawn: the runs whose data were chosen by their seed.
    """
    alike: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for task, encoder, data in sorted(groups):
        alike[task, encoder].append((task, encoder, data))
    names = dict.fromkeys(groups, "")
    for places in alike.values():
        if len(places) == 1:
            continue
        options = [_options_of_data(groups[place], drawn) for place in places]
        words = words_apart(options, first=_SPLITS, more=False)
        for place, own in zip(places, words, strict=True):
            told = own and words.count(own) == 1
            names[place] = own if told else ", ".join(filter(None, [own, f"data {place[2][:6]}"]))
    return names


def _options_of_data(runs: Sequence[Run], drawn: Collection[Run]) -> dict[str, Any]:
    """Return the options of the task that all runs share."""
    options = {
        name: value
        for name, value in runs[0].options.items()
        if name.startswith("task.") and all(run.options.get(name) == value for run in runs)
    }
    return options | {SPLIT_SEED: "each run's"} if runs[0] in drawn else options


def corpora_names(runs: Sequence[Run]) -> dict[Run, dict[str, str]]:
    """Return the names to show of each run's corpora, by auxiliary task.

    There are none where all runs have the same corpus. Domain text that belongs to the end task
    has no name.
    """
    given = {run: given_corpora(run) for run in runs}
    found = {given[run].get(name, "") for run in runs for name in _sized(run.result)}
    if len(found) < 2:
        return {run: {} for run in runs}
    short = short_paths(found - {""})
    return {run: {name: short[path] for name, path in given[run].items()} for run in runs}


def plain_label(run: Run, corpora: Mapping[str, str]) -> str:
    """Return a setting's label by what all reports tell: method, weighting, auxiliary tasks.

    Args:
        run: one of its runs.
        corpora: names of corpora to show, by auxiliary task.
    """
    result, variant = run.result, variant_of(run)
    label = method_label(result.method) + (f" ({variant})" if variant else "")
    if result.method in NAMED_BY_AUXILIARIES:
        sizes = [_amount(result, name, corpora) for name in _sized(result)]
        return " ".join([label, *sizes])
    label += weighting_label(result.method, result.weighting)
    auxiliaries = auxiliaries_label(result, corpora)
    return f"{label}, {auxiliaries}" if auxiliaries else label


def labels_apart(
    runs: Sequence[Run], labels: Sequence[str], options: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return different labels for settings, with the options in which those of one label differ.

    Args:
        runs: a run of each setting.
        labels: their plain labels.
        options: the options that the runs of each share.
    """
    alike: dict[str, list[tuple[Run, Mapping[str, Any]]]] = defaultdict(list)
    for run, label, shared in zip(runs, labels, options, strict=True):
        alike[label].append((run, shared))
    full: dict[Run, str] = {}
    for label, members in alike.items():
        words = words_apart([o for _, o in members], first=_DECISIVE, last=_TOLD)
        for (run, _), own in zip(members, words, strict=True):
            full[run] = f"{label} [{own}]" if own else label
    found = [full[run] for run in runs]
    return [
        label if found.count(label) == 1 else f"{label} [{run.name}]"
        for label, run in zip(found, runs, strict=True)
    ]


def auxiliaries_label(result: Result, corpora: Mapping[str, str]) -> str:
    """Return the auxiliary tasks in words, e.g. `DAPT 10x + TAPT`; empty without any.

    Args:
        result: the result.
        corpora: names of corpora to show, by auxiliary task.
    """
    composed = [name for name in result.auxiliaries if parts_of(name) is not None]
    names = [f"{len(composed)} composed objectives"] if composed else []
    domain = {f"domain text {_amount(result, n, corpora)}" for n in composed if n in _sized(result)}
    names += sorted(domain)
    for name in result.auxiliaries:
        if name in composed:
            continue
        shown = {"dapt": "DAPT", "tapt": "TAPT"}.get(name, name.replace("_", " "))
        sized = name in _sized(result) and result.is_text
        names.append(f"{shown} {_amount(result, name, corpora)}" if sized else shown)
    return " + ".join(names)


def _sized(result: Result) -> list[str]:
    """Return the auxiliary tasks whose examples are more or fewer by choice."""
    return [name for name, one in result.auxiliaries.items() if one.kind != "task"]


def _amount(result: Result, name: str, corpora: Mapping[str, str]) -> str:
    """Return an auxiliary task's size in words, with its corpus if that is to be shown."""
    size = size_label(result.auxiliaries[name].size)
    return f"{size} ({corpora[name]})" if name in corpora else size
