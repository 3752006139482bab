"""Makes a table of all settings of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from tartan.evaluation.statistics import Effect
from tartan.report.labels import PART_LABELS, plural
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.tables.table import (
    Cell,
    ResultTable,
    Row,
    Score,
    Words,
    interval_words,
    p_words,
    score_of,
)
from tartan.report.verdicts.comparison import LEVEL, Comparison, ComparisonOptions, adjust, compare
from tartan.report.verdicts.ranking import ranking_of
from tartan.run_folder.duration import duration
from tartan.run_folder.result import Part

_COLUMNS = (
    "dev",
    "test",
    "difference",
    "95% interval",
    "superiority",
    "p, two-sided",
    "p, one-sided",
    "training FLOPs",
    "time",
)


def overview(bench: Benchmark, part: Part, choice: ComparisonOptions) -> ResultTable:
    """Return the settings in the paper's order, each compared with the best baseline."""
    choice = choice.on(bench)
    reference, left_out = reference_of(bench.settings, part, paired=choice.paired)
    compared = comparisons_of(bench, part, choice)
    by_setting = {id(comparison.ours): comparison for comparison in compared}
    rows = [
        Row(
            setting.label,
            plural(len(setting.runs), "seed"),
            tuple(_cells(setting, part, by_setting.get(id(setting)))),
        )
        for setting in bench.settings
    ]
    return ResultTable(
        key=bench.key,
        title=f"{bench.label}: {PART_LABELS[part]}, {bench.metric_label}",
        part=part,
        heads=("setting", "runs"),
        columns=_COLUMNS,
        rows=tuple(rows),
        notes=tuple(_notes(reference, left_out, choice)),
    )


def comparisons_of(bench: Benchmark, part: Part, choice: ComparisonOptions) -> list[Comparison]:
    """Return the comparison of every other setting with the reference, adjusted if asked for."""
    choice = choice.on(bench)
    reference, _ = reference_of(bench.settings, part, paired=choice.paired)
    compared = [
        compare(setting, reference, part, paired=choice.paired)
        for setting in bench.settings
        if reference is not None and setting is not reference
    ]
    return adjust(compared) if choice.holm else compared


def reference_of(
    settings: Sequence[Setting], part: Part, *, paired: bool = False
) -> tuple[Setting | None, tuple[Setting, ...]]:
    """Return the setting to compare with, and the baselines that were not considered for it.

    It is the best baseline, or else the first setting with equal task weights, or else the first
    with a score; one of several seeds rather than of one. A baseline is a method that does not
    train the tasks together; `ranking_of` says which of them are considered.
    """
    scored = [setting for setting in settings if setting.scores(part)]
    baselines = [setting for setting in scored if not setting.is_joint]
    if not baselines:
        scored.sort(key=lambda s: (len(s.scores(part)) == 1, s.result.weighting != "uniform"))
        return next(iter(scored), None), ()
    ranking = ranking_of(baselines, part, paired=paired)
    best = ranking.settings[0].key
    return next(setting for setting in baselines if setting.key == best), ranking.left_out


def _cells(setting: Setting, part: Part, comparison: Comparison | None) -> list[Cell]:
    dev = setting.dev_mean
    cells: list[Cell] = [Words(f"{100 * dev:.2f}", setting, dev)]
    score = score_of(setting, part)
    if isinstance(score, Score) and comparison is not None and comparison.significant:
        score = replace(score, significant=True)
    cells.append(score)
    cells += _difference(comparison, isinstance(score, Score))
    flops = [run.result.flops for run in setting.runs]
    known = [value for value in flops if value is not None]
    if len(known) == len(flops):
        cells.append(Words(f"{fmean(known):.2e}", setting, fmean(known)))
    else:
        cells.append(Words("not counted"))
    seconds = fmean(run.result.seconds for run in setting.runs)
    cells.append(Words(duration(seconds), setting, seconds))
    return cells


def _difference(comparison: Comparison | None, scored: bool) -> list[Cell]:
    if comparison is None:
        return [Words("reference" if scored else "–"), *[Words("–")] * 4]
    effect, test, ours = comparison.effect, comparison.test, comparison.ours
    if effect is None or test is None or comparison.p is None:
        return [Words(comparison.reason), *[Words("–")] * 4]
    interval = effect.interval
    return [
        Words(_difference_words(comparison, effect), ours, effect.difference),
        Words("–" if interval is None else interval_words(interval, signed=True), ours),
        Words(f"{effect.superiority:.2f}", ours, effect.superiority),
        Words(p_words(comparison.p, comparison.adjusted is not None), ours, comparison.p),
        Words(p_words(test.one_sided), ours, test.one_sided),
    ]


def _difference_words(comparison: Comparison, effect: Effect) -> str:
    """Return a difference in points, with the number of pairs where some seeds have none."""
    words = f"{100 * effect.difference:+.2f}"
    sides = (comparison.ours, comparison.theirs)
    if all(len(side.scores(comparison.part)) == comparison.seeds[0] for side in sides):
        return words
    return f"{words} ({plural(comparison.seeds[0], 'pair')})" if comparison.paired else words


def _notes(
    reference: Setting | None,
    left_out: Sequence[Setting],
    choice: ComparisonOptions,
) -> list[str]:
    notes = ["Mean ± standard deviation over seeds, and differences, in percent."]
    if reference is not None:
        paired = " of paired seeds" if choice.paired else ""
        holm = ", the two-sided one after Holm's correction over the table" if choice.holm else ""
        why = (
            "as no method here trains the tasks one after the other"
            if reference.is_joint
            else "the best of the methods that do not train the tasks together"
        )
        notes.append(f"Differences are to {reference.label}, {why}.")
        if left_out:
            labels = ", ".join(setting.label for setting in left_out)
            notes.append(f"Not considered for that, as too few of its seeds compare: {labels}.")
        notes += [
            f"p: permutation test{paired}, two-sided (different) and one-sided (better){holm}; "
            f"bold: better, two-sided p below {LEVEL}.",
            f"Interval: {'Student' if choice.paired else 'Welch'}'s, of the difference; none where "
            "the values do not vary. Superiority: the share of pairs of runs in which this "
            "setting's is the better.",
        ]
    notes.append("FLOPs: of training passes, mean over seeds. Time: of all stages, with dev.")
    return notes
