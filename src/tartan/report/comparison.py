"""Groups runs into settings, which differ by their seed alone, and compares settings."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from statistics import fmean
from typing import Any

from tartan.evaluation.statistics import Effect, PermutationTest, effect_of, holm, permutation_test
from tartan.report.runs import Run
from tartan.runs.identity import METHODS, options_read
from tartan.runs.result import Part, Result

LEVEL = 0.05
"""p-value below which a difference is called significant."""
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
    draws_data: bool  # whether each seed draws its own data
    paired: bool  # whether values of a seed belong together
    holm: bool  # whether p-values are adjusted over a table

    @property
    def result(self) -> Result:
        return self.settings[0].result

    @property
    def metric_label(self) -> str:
        return metric_label(self.result.metric)

    @property
    def differing_options(self) -> dict[str, list[Any]]:
        return differing_options([setting.options for setting in self.settings])

    @property
    def runs(self) -> list[Run]:
        return [run for setting in self.settings for run in setting.runs]

    @property
    def parts(self) -> list[Part]:
        """The whole test split, and the unseen part if some, but not all, texts are in train."""
        tests = [run.result.test for run in self.runs]
        both = any(test.unseen.examples not in (0, test.whole.examples) for test in tests)
        return ["whole", "unseen"] if both else ["whole"]


def benchmarks_of(runs: Iterable[Run], paired: bool = False, holm: bool = False) -> list[Benchmark]:
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
        benches.append(Benchmark(key, label, settings, drawn, paired or drawn, holm))
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


@dataclass(frozen=True)
class Comparison:
    """A comparison of two settings on a part of test."""

    ours: Setting
    theirs: Setting
    seeds: tuple[int, int]  # number of values on each side
    paired: bool
    effect: Effect | None = None
    test: PermutationTest | None = None
    # one-sided only where it was fixed before looking at the scores which side has to be better
    p: float | None = None
    family: int = 0  # number of comparisons over which Holm's correction adjusted `p`

    @property
    def significant(self) -> bool:
        """Whether ours is better, with p below `LEVEL`."""
        better = self.effect is not None and self.effect.difference > 0
        return better and self.p is not None and self.p < LEVEL

    @property
    def needs(self) -> str:
        return f"needs two seeds {'that both have' if self.paired else 'on each side'}"


def compare(
    ours: Setting, theirs: Setting, part: Part, *, paired: bool = False, directed: bool = False
) -> Comparison:
    """Test whether `ours` differs from `theirs`, or, if `directed`, is better."""
    left, right = ours.scores(part), theirs.scores(part)
    if paired:
        shared = sorted(left.keys() & right.keys())
        left, right = ({seed: scores[seed] for seed in shared} for scores in (left, right))
    seeds, values = (len(left), len(right)), (list(left.values()), list(right.values()))
    if min(seeds) < 2:
        return Comparison(ours, theirs, seeds, paired)
    test = permutation_test(*values, paired=paired)
    p = test.one_sided if directed else test.two_sided
    return Comparison(ours, theirs, seeds, paired, effect_of(*values, paired=paired), test, p)


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the same comparisons, with p-values adjusted by Holm's correction."""
    values = [one.p for one in comparisons if one.p is not None]
    adjusted = iter(holm(values))
    return [
        one if one.p is None else replace(one, p=next(adjusted), family=len(values))
        for one in comparisons
    ]


def ranking_of(settings: Sequence[Setting], part: Part, *, paired: bool = False) -> list[Setting]:
    """Return settings by their mean on a part of test, the highest first.

    Where some have two seeds, those with one are left out: nothing could be tested against them. Of
    pairs, the seeds count that all share; those with the fewest are left out where they have none.
    """
    kept = [setting for setting in settings if setting.scores(part)]
    least = min(2, max((len(setting.scores(part)) for setting in kept), default=0))
    kept = [setting for setting in kept if len(setting.scores(part)) >= least]
    while paired and kept:
        seeds = set.intersection(*(set(setting.scores(part)) for setting in kept))
        if len(seeds) >= least:
            kept = [setting.of_seeds(seeds) for setting in kept]
            break
        kept.remove(min(reversed(kept), key=lambda setting: len(setting.scores(part))))
    return sorted(kept, key=lambda setting: -setting.mean(part))


def reference_of(bench: Benchmark, part: Part) -> Setting | None:
    """Return the best baseline, which trains no tasks together; else one with equal weights."""
    scored = [setting for setting in bench.settings if setting.scores(part)]
    baselines = [setting for setting in scored if not setting.result.is_joint]
    if baselines:
        best = ranking_of(baselines, part, paired=bench.paired)[0]
        return next(setting for setting in baselines if setting.key == best.key)
    scored.sort(key=lambda s: (len(s.scores(part)) == 1, s.result.weighting != "uniform"))
    return next(iter(scored), None)


def comparisons_of(bench: Benchmark, part: Part) -> list[Comparison]:
    """Return the comparison of every other setting with the reference."""
    reference = reference_of(bench, part)
    compared = [
        compare(setting, reference, part, paired=bench.paired)
        for setting in bench.settings
        if reference is not None and setting is not reference
    ]
    return adjust(compared) if bench.holm else compared


def best_against_others(bench: Benchmark, part: Part) -> tuple[list[Setting], list[Comparison]]:
    """Return the ranking, and the two-sided comparisons of its first with each other."""
    ranked = ranking_of(bench.settings, part, paired=bench.paired)
    compared = [compare(ranked[0], other, part, paired=bench.paired) for other in ranked[1:]]
    return ranked, adjust(compared) if bench.holm else compared
