"""Groups runs into settings, which differ by their seed alone, and settings into benchmarks."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from statistics import fmean
from typing import Any

from tartan.report.runs import Run
from tartan.runs.identity import METHODS, options_read
from tartan.runs.result import Part, Result

PART_LABELS = {"whole": "whole test split", "unseen": "test texts not in train"}
_LAST = ("seed", "task.", "encoder.", "method.name", "classifier.")
"""Beginnings of options that labels show last: names and other options mostly say the same."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Runs of one config with different seeds, in their order."""

    key: str  # in HTML ids
    label: str
    runs: tuple[Run, ...]
    options: Mapping[str, Any]  # that its training read, with the same values in all runs

    @property
    def result(self) -> Result:
        return self.runs[0].result

    @property
    def dev_mean(self) -> float:
        return fmean(run.result.dev_score for run in self.runs)

    def scores(self, part: Part) -> dict[int, float]:
        """Return the task's metric on a part of test, by seed, for seeds that have one."""
        scores = {run.result.seed: run.result.score(part) for run in self.runs}
        return {seed: score for seed, score in scores.items() if score is not None}

    def mean(self, part: Part) -> float:
        return fmean(self.scores(part).values())

    def of_seeds(self, seeds: Collection[int]) -> Setting:
        return replace(self, runs=tuple(run for run in self.runs if run.result.seed in seeds))


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Settings that may be compared: on the same data, with the same encoder."""

    key: str
    label: str
    settings: tuple[Setting, ...]
    draws_data: bool
    paired: bool

    @property
    def result(self) -> Result:
        return self.settings[0].result

    @property
    def metric_label(self) -> str:
        return metric_label(self.result.metric)

    @property
    def runs(self) -> list[Run]:
        return [run for setting in self.settings for run in setting.runs]

    @property
    def parts(self) -> list[Part]:
        """The whole test split, and the unseen part if some, but not all, texts are in train."""
        tests = [run.result.test for run in self.runs]
        both = any(test.unseen.examples not in (0, test.whole.examples) for test in tests)
        return ["whole", "unseen"] if both else ["whole"]


def benchmarks_of(runs: Iterable[Run], paired: bool = False) -> list[Benchmark]:
    """Group runs that were evaluated on test, in the order of tasks and encoders."""
    groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.result.is_tested:
            groups[run.result.task, run.result.encoder, run.result.data_id].append(run)
    names = sorted(groups)
    shared = [_shared_options(groups[name]) for name in names]
    labels = labels_apart(
        [f"{task}, {encoder}" for task, encoder, _ in names],
        [{n: v for n, v in options.items() if n.startswith("task.")} for options in shared],
        [f"data {data_id[:6]}" for *_, data_id in names],
    )
    benches: list[Benchmark] = []
    for name, label in zip(names, labels, strict=True):
        key = re.sub(r"[^A-Za-z0-9_]+", "-", label).strip("-")[:80] or "runs"
        if any(bench.key == key for bench in benches):
            key = f"{key}--{len(benches)}"
        drawn = len({str(run.result.fingerprints) for run in groups[name]}) > 1
        settings = _settings_of(groups[name], key)
        benches.append(Benchmark(key, label, settings, drawn, paired or drawn))
    return benches


def _settings_of(runs: Sequence[Run], bench: str) -> tuple[Setting, ...]:
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.result.setting_id].append(run)
    settings = []
    for group in groups.values():
        # whoever trains a setting anew thinks no more of the earlier run; of one time, `seed=0-2`
        # is newer than `seed=0`
        group.sort(key=lambda run: (run.finished, len(run.name), run.name))
        newest = {run.result.seed: run for run in group}
        kept = tuple(newest[seed] for seed in sorted(newest))
        options = options_read(kept[0].result, _shared_options(kept))
        settings.append(Setting("", kept[0].result.label, kept, options))
    settings.sort(key=_place)
    labels = labels_apart(
        [setting.label for setting in settings],
        [setting.options for setting in settings],
        [setting.runs[0].name for setting in settings],
    )
    return tuple(
        replace(setting, key=f"{bench}--setting-{number}", label=label)
        for number, (setting, label) in enumerate(zip(settings, labels, strict=True), 1)
    )


def _shared_options(runs: Sequence[Run]) -> dict[str, Any]:
    first, *others = (run.options for run in runs)
    return {n: v for n, v in first.items() if all(n in o and o[n] == v for o in others)}


def _place(setting: Setting) -> tuple[Any, ...]:
    """Return a key that sorts as the paper: by method, weighting, auxiliaries and their size."""
    result, methods = setting.result, list(METHODS)
    place = methods.index(result.method) if result.method in methods else len(methods)
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
    """Return different labels: equal ones get the options in which they differ, or their names."""
    full = list(labels)
    for label in {label for label in labels if labels.count(label) > 1}:
        places = [place for place, other in enumerate(labels) if other == label]
        rows = differing_options([options[place] for place in places])
        words: list[tuple[str, ...]] = [()] * len(places)
        for name in sorted(rows, key=lambda name: (name.startswith(_LAST), name)):
            shown = [f"{name.removeprefix('method.stages.')}={_short(one)}" for one in rows[name]]
            finer = [(*old, new) for old, new in zip(words, shown, strict=True)]
            words = finer if len(set(finer)) > len(set(words)) else words
        for place, word in zip(places, words, strict=True):
            ending = (names[place],) if words.count(word) > 1 else ()
            full[place] = f"{label} [{', '.join(word + ending)}]"
    return full


def _short(value: Any) -> str:
    """Return an option's value as on the command line; of a path the last two parts."""
    return "/".join(PurePath(value).parts[-2:]) if isinstance(value, str) else json.dumps(value)


def metric_label(metric: str) -> str:
    """Return a metric's name, e.g. `macro-F1` for `macro_f1`."""
    return metric.replace("_f1", "-F1").replace("_", " ")
