"""Groups runs into settings, which differ by their seed alone, and settings into benchmarks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from statistics import fmean
from typing import Any

from tartan.report.runs import Run
from tartan.runs.identity import METHODS, options_read, variant_of
from tartan.runs.result import Part, Result, Split

PART_LABELS = {"whole": "whole test split", "unseen": "test texts not in train"}
_LONGEST = 60
"""Maximum length of a label in figures [characters]."""
_LAST = ("seed", "task.", "encoder.", "method.name", "classifier.")
"""Beginnings of options that labels show last: names and other options mostly say the same."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Runs of one config with different seeds.

    Attributes:
        key: name in files and HTML ids: letters, digits, `_` and `-`.
        label: name that tells it from the benchmark's other settings.
        runs: the runs in the order of their seeds.
        repeated: older runs with a seed that is in `runs` too; they are not counted.
        options: the options that its training read, of which all its runs have the same values.
        short: the label, shortened for figures; no other setting's is the same.
    """

    key: str
    label: str
    runs: tuple[Run, ...]
    repeated: tuple[Run, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    short: str = ""

    @property
    def result(self) -> Result:
        """The result of the first run, for what all runs share."""
        return self.runs[0].result

    @property
    def variant(self) -> str:
        """Modules with which the paper's method was not trained as it is; empty if it was."""
        return variant_of(self.result, self.options)

    def scores(self, part: Part) -> dict[int, float]:
        """Return the task's metric on a part of test, by seed, for seeds that have one."""
        scores = {run.result.seed: run.result.score(part) for run in self.runs}
        return {seed: score for seed, score in scores.items() if score is not None}

    def mean(self, part: Part) -> float:
        """Return the mean of `scores`."""
        return fmean(self.scores(part).values())

    def of_seeds(self, seeds: Collection[int]) -> Setting:
        """Return the setting with its runs of these seeds only."""
        return replace(self, runs=tuple(run for run in self.runs if run.result.seed in seeds))

    @property
    def dev_mean(self) -> float:
        """Mean metric on dev, by which a choice between settings may be made."""
        return fmean(run.result.dev_score for run in self.runs)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Settings that may be compared: on the same data, with the same encoder.

    Where each seed draws its own data, runs of the same seed are pairs.
    """

    key: str
    label: str
    settings: tuple[Setting, ...]
    draws_data: bool = False

    @property
    def result(self) -> Result:
        """The result of the first run, for what all runs share."""
        return self.settings[0].result

    @property
    def metric_label(self) -> str:
        """The metric's name as a report shows it."""
        return metric_label(self.result.metric)

    @property
    def runs(self) -> list[Run]:
        """The runs of all settings."""
        return [run for setting in self.settings for run in setting.runs]

    @property
    def tests(self) -> list[Split]:
        """The scores on test of all runs."""
        return [run.result.test for run in self.runs]

    @property
    def has_two_parts(self) -> bool:
        """Whether some, but not all, test texts are in train."""
        return any(test.unseen.examples not in (0, test.whole.examples) for test in self.tests)


def benchmarks_of(runs: Iterable[Run]) -> list[Benchmark]:
    """Group runs that were evaluated on test, in the order of tasks and encoders."""
    groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.result.is_tested:
            result = run.result
            groups[result.task, result.encoder, result.data_id].append(run)
    places = sorted(groups)
    options = [
        {n: v for n, v in _shared_options(groups[place]).items() if n.startswith("task.")}
        for place in places
    ]
    labels = labels_apart(
        [f"{task}, {encoder}" for task, encoder, _ in places],
        options,
        [f"data {place[2][:6]}" for place in places],
    )
    benches: list[Benchmark] = []
    for place, label in zip(places, labels, strict=True):
        members, taken = groups[place], [bench.key for bench in benches]
        stem = re.sub(r"[^A-Za-z0-9_]+", "-", label).strip("-")[:80] or "runs"
        count = 1 + sum(key.partition("--")[0] == stem for key in taken)
        key = stem if count == 1 else f"{stem}--{count}"
        drawn = len({str(run.result.fingerprints) for run in members}) > 1
        benches.append(Benchmark(key, label, _settings_of(members, key), drawn))
    return benches


def _settings_of(runs: Sequence[Run], bench: str) -> tuple[Setting, ...]:
    grouped: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        grouped[run.result.setting_id].append(run)
    settings = []
    for members in grouped.values():
        # resume=false starts over beside an earlier run, of which its user thinks no more; of one
        # time, `seed=0-2` is newer than `seed=0`
        members.sort(key=lambda run: (run.finished, len(run.name), run.name))
        by_seed = {run.result.seed: run for run in members}
        kept = tuple(by_seed[seed] for seed in sorted(by_seed))
        repeated = tuple(run for run in members if run not in kept)
        options = options_read(kept[0].result, _shared_options(kept))
        settings.append(Setting("", kept[0].result.label, kept, repeated, options))
    settings.sort(key=_place)
    labels = labels_apart(
        [one.label for one in settings],
        [one.options for one in settings],
        [one.runs[0].name for one in settings],
    )
    return tuple(
        replace(setting, key=f"{bench}--setting-{number}", label=label, short=short)
        for number, (setting, label, short) in enumerate(
            zip(settings, labels, shortened(labels, _LONGEST), strict=True), 1
        )
    )


def _shared_options(runs: Sequence[Run]) -> dict[str, Any]:
    first, *others = (run.options for run in runs)
    return {n: v for n, v in first.items() if all(n in o and o[n] == v for o in others)}


def _place(setting: Setting) -> tuple[Any, ...]:
    result, methods = setting.result, list(METHODS)
    known = result.method in methods
    place = methods.index(result.method) if known else len(methods)
    sizes = [one.examples for one in result.auxiliaries.values() if one.kind != "task"]
    kinds = sorted(one.kind for one in result.auxiliaries.values())
    return place, result.weighting or "", kinds, sizes, setting.label, setting.runs[0].name


def differing_options(options: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of the options that differ, by name; None where one is absent."""
    rows = {name: [one.get(name) for one in options] for name in sorted(set().union(*options))}
    return {name: row for name, row in rows.items() if any(value != row[0] for value in row)}


def labels_apart(
    labels: Sequence[str], options: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[str]:
    """Return different labels: equal ones get the options in which they differ, or their names.

    E.g. `META-TARTAN [eta=0.1]`; as few options are shown as it takes.
    """
    full = list(labels)
    for label in {label for label in labels if labels.count(label) > 1}:
        places = [place for place, other in enumerate(labels) if other == label]
        rows = differing_options([options[place] for place in places])
        words = [""] * len(places)
        for name in sorted(rows, key=lambda name: (name.startswith(_LAST), name)):
            shown = name.removeprefix("method.stages.")
            finer = [
                f"{old}, {shown}={_short(value)}".removeprefix(", ")
                for old, value in zip(words, rows[name], strict=True)
            ]
            words = finer if len(set(finer)) > len(set(words)) else words
        for place, own in zip(places, words, strict=True):
            more = [own] if own else []
            more += [names[place]] if words.count(own) > 1 else []
            full[place] = f"{label} [{', '.join(more)}]"
    return full


def _short(value: Any) -> str:
    """Return an option's value as on the command line; of a path the last two parts."""
    if isinstance(value, str):
        return "/".join(PurePath(value).parts[-2:])
    return {"True": "true", "False": "false", "None": "null"}.get(repr(value), str(value))


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


def metric_label(metric: str) -> str:
    """Return a metric's name, e.g. `macro-F1` for `macro_f1`."""
    return metric.replace("_f1", "-F1").replace("_", " ")


def plural(count: int, noun: str) -> str:
    """Return a number with its noun, e.g. `1 seed`, `3 seeds`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
