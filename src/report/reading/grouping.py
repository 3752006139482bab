"""Groups runs that differ only in the seed, and the settings that may be compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from src.core.task_names import parts_of
from src.report.labels import (
    METHODS,
    NAMED_BY_AUXILIARIES,
    method_label,
    metric_label,
    size_label,
    weighting_label,
)
from src.report.reading.drawn_data import (
    SPLIT_SEED,
    auxiliary_identity,
    drawn_by_seed,
    fingerprints_without_seed,
)
from src.report.reading.run import Run
from src.run_folder.result import Part, Result, Split

_TOLD = ("seed", "task.", "encoder.", "method.name", "classifier.")
"""Options that a setting's label leaves out, because the result or the benchmark has them."""
_SEEDS = ("seed", "encoder.seed")
"""Options that are the run's seed, or follow it."""
_SHOWN = 3
"""Maximum number of options that a label shows."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Runs of one config with different seeds.

    Attributes:
        key: name of the setting in files and HTML ids: letters, digits, `_` and `-`.
        label: name that tells it from the benchmark's other settings.
        runs: the runs in the order of their seeds; at least one.
        repeated: further runs with a seed that is in `runs` already; they are not counted.
    """

    key: str
    label: str
    runs: tuple[Run, ...]
    repeated: tuple[Run, ...] = ()

    @property
    def result(self) -> Result:
        """The result of the first run, for what all runs share."""
        return self.runs[0].result

    @property
    def method(self) -> str:
        """The method's name in the config."""
        return self.result.method

    @property
    def is_joint(self) -> bool:
        """Whether its runs train the end task together with auxiliary tasks: no baselines."""
        return self.result.is_joint

    def scores(self, part: Part) -> dict[int, float]:
        """Return the task's metric on a part of test, by seed, for seeds that have one."""
        found = {run.result.seed: run.result.score(part) for run in self.runs}
        return {seed: score for seed, score in found.items() if score is not None}

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

    Attributes:
        key: name of the benchmark in files and HTML ids.
        label: names of the task and the encoder.
        task: the task's name.
        encoder: the encoder's name.
        metric: the task's metric.
        settings: the settings, in the order of the paper's methods.
        draws_data: whether each seed draws its own data, so that runs of the same seed are pairs.
    """

    key: str
    label: str
    task: str
    encoder: str
    metric: str
    settings: tuple[Setting, ...]
    draws_data: bool = False

    @property
    def metric_label(self) -> str:
        """The metric's name as a report shows it."""
        return metric_label(self.metric)

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
    """Group runs into benchmarks, and these into settings, in the order of tasks and encoders.

    Runs that were not evaluated on test are left out.
    """
    alike: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if run.result.is_tested:
            alike[_data_of(run, drawn=True)].append(run)
    drawn = set().union(*(drawn_by_seed(members) for members in alike.values()))
    sorted_runs: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for members in alike.values():
        for run in members:
            sorted_runs[_data_of(run, run in drawn)].append(run)
    versions: dict[tuple[str, ...], int] = defaultdict(int)
    for task, encoder, _ in sorted_runs:
        versions[(task, encoder)] += 1
    benches: list[Benchmark] = []
    for (task, encoder, data), members in sorted(sorted_runs.items()):
        # the same names for other data: the numbers must not be compared
        suffix = f", data {data[:6]}" if versions[(task, encoder)] > 1 else ""
        key = _key(f"{task}-{encoder}{suffix}", [bench.key for bench in benches])
        draws_data = members[0] in drawn
        benches.append(
            Benchmark(
                key,
                f"{task}, {encoder}{suffix}",
                task,
                encoder,
                members[0].result.metric,
                _settings_of(members, key, draws_data),
                draws_data,
            )
        )
    return benches


def auxiliaries_label(result: Result) -> str:
    """Return the auxiliary tasks in words, e.g. `DAPT 10x + TAPT`; empty without any."""
    composed = [own for name, own in result.auxiliaries.items() if parts_of(name) is not None]
    names = [f"{len(composed)} composed objectives"] if composed else []
    sizes = {own.size for own in composed if own.kind != "task"}
    names += [f"domain text {size_label(size)}" for size in sorted(sizes, key=str)]
    for name, auxiliary in result.auxiliaries.items():
        if auxiliary in composed:
            continue
        shown = {"dapt": "DAPT", "tapt": "TAPT"}.get(name, name.replace("_", " "))
        sized = auxiliary.kind != "task" and result.is_text
        names.append(f"{shown} {size_label(auxiliary.size)}" if sized else shown)
    return " + ".join(names)


def differing_options(settings: Sequence[Setting]) -> dict[str, list[Any]]:
    """Return each setting's value of the options that differ, by name; None if absent.

    Options of stages that a setting did not run are left out.
    """
    options = [_options_of(setting.runs[0], run_stages=True) for setting in settings]
    names = sorted(set().union(*options))
    values = {name: [one.get(name) for one in options] for name in names}
    return {name: row for name, row in values.items() if any(value != row[0] for value in row)}


def _data_of(run: Run, drawn: bool) -> tuple[str, ...]:
    """Return what has to be equal for runs to be compared, of drawn data without the seed."""
    r = run.result
    fingerprints = fingerprints_without_seed(run) if drawn else r.fingerprints
    return r.task, r.encoder, _digest([fingerprints, r.labels, r.metric])


def _settings_of(runs: Sequence[Run], bench: str, draws_data: bool) -> tuple[Setting, ...]:
    grouped: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        r = run.result
        options = _options_of(run)
        auxiliaries = {n: auxiliary_identity(a, draws_data) for n, a in r.auxiliaries.items()}
        grouped[_digest([r.method, r.weighting, auxiliaries, options])].append(run)
    unnamed = []
    for members in grouped.values():
        by_seed: dict[int, Run] = {}
        for run in sorted(members, key=lambda run: run.name):
            by_seed.setdefault(run.result.seed, run)
        kept = tuple(by_seed[seed] for seed in sorted(by_seed))
        repeated = tuple(run for run in members if run not in kept)
        unnamed.append(Setting("", _plain_label(members[0].result), kept, repeated))
    unnamed.sort(key=_place)
    named = []
    for number, setting in enumerate(unnamed, 1):
        alike = [other for other in unnamed if other.label == setting.label]
        label = setting.label + _apart(setting, alike)
        named.append(replace(setting, key=f"{bench}--setting-{number}", label=label))
    return tuple(named)


def _options_of(run: Run, run_stages: bool = False) -> dict[str, Any]:
    """Return a run's options without its seeds; if asked, only those of stages that it ran.

    The seed of its data is left out as well: what it chose is in the fingerprints.
    """
    stages = {stage.name for stage in run.result.stages}
    kept = {}
    for name, value in run.options.items():
        place = name.split(".")
        idle = place[:2] == ["method", "stages"] and stages.isdisjoint(place[2:3])
        seeded = name == SPLIT_SEED or (name in _SEEDS and value == run.result.seed)
        if not (run_stages and idle) and not seeded:
            kept[name] = value
    return kept


def _plain_label(result: Result) -> str:
    label = method_label(result.method)
    if result.method in NAMED_BY_AUXILIARIES:
        sizes = [size_label(a.size) for a in result.auxiliaries.values() if a.kind != "task"]
        return " ".join([label, *sizes])
    label += weighting_label(result.method, result.weighting)
    auxiliaries = auxiliaries_label(result)
    return f"{label}, {auxiliaries}" if auxiliaries else label


def _apart(setting: Setting, alike: Sequence[Setting]) -> str:
    """Return the options that tell a setting from others with the same label."""
    if len(alike) == 1:
        return ""
    differing = {
        name: row for name, row in differing_options(alike).items() if not name.startswith(_TOLD)
    }
    index = alike.index(setting)
    shown = [f"{'.'.join(n.split('.')[-2:])}={row[index]}" for n, row in differing.items()]
    if not shown:
        return f" [{index + 1}]"
    more = ", ..." if len(shown) > _SHOWN else ""
    return f" [{', '.join(shown[:_SHOWN])}{more}]"


def _place(setting: Setting) -> tuple[Any, ...]:
    methods = list(METHODS)
    place = methods.index(setting.method) if setting.method in methods else len(methods)
    sizes = [a.examples for a in setting.result.auxiliaries.values() if a.kind != "task"]
    kinds = sorted(a.kind for a in setting.result.auxiliaries.values())
    return place, setting.result.weighting or "", kinds, sizes, setting.label, setting.runs[0].name


def _key(text: str, taken: Sequence[str]) -> str:
    """Return `text` in characters for file names and HTML ids, unlike the keys in `taken`.

    Two dashes in a row occur only where something is appended to it.
    """
    key = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:80] or "runs"
    number, free = 1, key
    while free in taken:
        number += 1
        free = f"{key}--{number}"
    return free


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
