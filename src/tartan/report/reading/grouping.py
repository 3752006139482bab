"""Groups runs that differ only in the seed, and the settings that may be compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from tartan.report.labels import METHODS, metric_label
from tartan.report.reading.apart import differing_values, shortened
from tartan.report.reading.drawn_data import (
    auxiliary_identity,
    drawn_by_seed,
    fingerprints_without_seed,
)
from tartan.report.reading.naming import (
    corpora_names,
    data_names,
    labels_apart,
    plain_label,
)
from tartan.report.reading.read_options import (
    ENCODER_SEED,
    encoders_by_seed,
    read_options,
    variant_of,
)
from tartan.report.reading.run import Run
from tartan.run_folder.result import Part, Result, Split

_LONGEST = 60
"""Maximum length of a label in figures [characters]."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Runs of one config with different seeds.

    Attributes:
        key: name of the setting in files and HTML ids: letters, digits, `_` and `-`.
        label: name that tells it from the benchmark's other settings.
        runs: the runs in the order of their seeds; at least one.
        repeated: older runs with a seed that is in `runs` too; they are not counted.
        options: the options that its training read, without the seeds that differ from run to run.
        short: the label, shortened for figures; no other setting's is the same.
        corpora: the shown name of the domain text that each auxiliary task was given, where the
            benchmark's settings were trained on several corpora; else empty.
    """

    key: str
    label: str
    runs: tuple[Run, ...]
    repeated: tuple[Run, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    short: str = ""
    corpora: Mapping[str, str] = field(default_factory=dict)

    @property
    def result(self) -> Result:
        """The result of the first run, for what all runs share."""
        return self.runs[0].result

    @property
    def method(self) -> str:
        """The method's name in the config."""
        return self.result.method

    @property
    def variant(self) -> str:
        """Modules with which the paper's method was not trained as it is; empty if it was."""
        return variant_of(self.runs[0])

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
    alike: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.result.is_tested:
            alike[_data_of(run, drawn=True)].append(run)
    drawn = set().union(*(drawn_by_seed(members) for members in alike.values()))
    sorted_runs: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for members in alike.values():
        for run in members:
            sorted_runs[_data_of(run, run in drawn)].append(run)
    names = data_names(sorted_runs, drawn)
    benches: list[Benchmark] = []
    for place, members in sorted(sorted_runs.items()):
        task, encoder, _ = place
        label = ", ".join([task, encoder, *filter(None, [names[place]])])
        key = _key(label, [bench.key for bench in benches])
        draws_data = members[0] in drawn
        benches.append(
            Benchmark(
                key,
                label,
                task,
                encoder,
                members[0].result.metric,
                _settings_of(members, key, draws_data),
                draws_data,
            )
        )
    return benches


def differing_options(settings: Sequence[Setting]) -> dict[str, list[Any]]:
    """Return each setting's value of the options that differ, by name; None if absent.

    Options that a setting did not read are left out.
    """
    return differing_values([setting.options for setting in settings])


def _data_of(run: Run, drawn: bool) -> tuple[str, str, str]:
    """Return what has to be equal for runs to be compared, of drawn data without the seed."""
    r = run.result
    fingerprints = fingerprints_without_seed(run) if drawn else r.fingerprints
    return r.task, r.encoder, _digest([fingerprints, r.labels, r.metric])


def _settings_of(runs: Sequence[Run], bench: str, draws_data: bool) -> tuple[Setting, ...]:
    options = _shared_options(runs, draws_data)
    grouped: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        grouped[_identity(run, options[run], draws_data)].append(run)
    settings = []
    corpora = corpora_names([members[0] for members in grouped.values()])
    for members in grouped.values():
        # resume=false starts over beside an earlier run, of which its user thinks no more
        by_seed = {run.result.seed: run for run in sorted(members, key=_age)}
        kept = tuple(by_seed[seed] for seed in sorted(by_seed))
        repeated = tuple(run for run in members if run not in kept)
        own = corpora[members[0]]
        label = plain_label(kept[0], own)
        settings.append(Setting("", label, kept, repeated, options[kept[0]], corpora=own))
    settings.sort(key=_place)
    labels = labels_apart(
        [one.runs[0] for one in settings],
        [one.label for one in settings],
        [one.options for one in settings],
    )
    return tuple(
        replace(setting, key=f"{bench}--setting-{number}", label=label, short=short)
        for number, (setting, label, short) in enumerate(
            zip(settings, labels, shortened(labels, _LONGEST), strict=True), 1
        )
    )


def _shared_options(runs: Sequence[Run], draws_data: bool) -> dict[Run, dict[str, Any]]:
    """Return each run's options that the runs of its setting share."""
    read = {run: read_options(run) for run in runs}
    fixed = {
        run: {name: value for name, value in options.items() if name != ENCODER_SEED}
        for run, options in read.items()
    }
    alike: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        alike[_identity(run, fixed[run], draws_data)].append(run)
    seeded = set().union(*(encoders_by_seed(members) for members in alike.values()))
    return {run: fixed[run] if run in seeded else read[run] for run in runs}


def _identity(run: Run, options: Mapping[str, Any], draws_data: bool) -> str:
    """Return what is equal for runs of one setting."""
    r = run.result
    auxiliaries = {n: auxiliary_identity(a, draws_data) for n, a in r.auxiliaries.items()}
    return _digest([r.method, r.weighting, auxiliaries, options])


def _age(run: Run) -> tuple[int, int, str]:
    """Return what orders runs from old to new; of one time, `seed=0-2` is newer than `seed=0`."""
    return run.finished, len(run.name), run.name


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
    """Return a hash of plain values, the same of equal numbers: a config may have 30 or 30.0."""
    text = json.dumps(_whole(content), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _whole(content: Any) -> Any:
    """Return `content` with whole numbers as integers."""
    if isinstance(content, Mapping):
        return {name: _whole(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_whole(value) for value in content]
    return int(content) if isinstance(content, float) and content.is_integer() else content
