"""Makes a table of all settings of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from src.report.labels import JOINT, PARTS, plural, seconds_label
from src.report.reading.grouping import Benchmark, Setting
from src.report.tables.table import Cell, Number, ResultTable, Row, Score, Words, p_words, score_of
from src.report.verdicts.comparison import LEVEL, Choice, Comparison, adjust, compare
from src.run_folder.result import Part

_COLUMNS = (
    "dev",
    "test",
    "difference",
    "95% interval",
    "superiority",
    "p, one-sided",
    "p, two-sided",
    "training FLOPs",
    "time",
)


def overview(bench: Benchmark, part: Part, choice: Choice) -> ResultTable:
    """Return the settings in the paper's order, each compared with the best baseline."""
    reference = reference_of(bench.settings, part)
    compared = [
        compare(setting, reference, part, paired=choice.paired)
        for setting in bench.settings
        if reference is not None and setting is not reference
    ]
    if choice.holm:
        compared = adjust(compared)
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
        title=f"{bench.label}: {PARTS[part]}, {bench.metric_label}",
        part=part,
        heads=("setting", "runs"),
        columns=_COLUMNS,
        rows=tuple(rows),
        notes=tuple(_notes(reference, choice)),
    )


def reference_of(settings: Sequence[Setting], part: Part) -> Setting | None:
    """Return the setting to compare with: the best baseline, or else the first with a score.

    A baseline is a method that does not train the tasks together.
    """
    scored = [setting for setting in settings if setting.scores(part)]
    baselines = [setting for setting in scored if setting.method not in JOINT]
    if baselines:
        return max(baselines, key=lambda setting: fmean(setting.scores(part).values()))
    return scored[0] if scored else None


def _cells(setting: Setting, part: Part, comparison: Comparison | None) -> list[Cell]:
    dev = setting.dev_mean
    cells: list[Cell] = [
        Number(dev, f"{100 * dev:.2f}", setting),
    ]
    score = score_of(setting, part)
    if isinstance(score, Score) and comparison is not None and comparison.significant:
        score = Score(score.mean, score.deviation, score.seeds, setting, best=True)
    cells.append(score)
    cells += _difference(comparison, isinstance(score, Score))
    flops = [run.result.flops for run in setting.runs]
    known = [value for value in flops if value is not None]
    if len(known) == len(flops):
        cells.append(Number(fmean(known), f"{fmean(known):.2e}", setting))
    else:
        cells.append(Words("not counted"))
    seconds = fmean(run.result.seconds for run in setting.runs)
    cells.append(Number(seconds, seconds_label(seconds), setting))
    return cells


def _difference(comparison: Comparison | None, scored: bool) -> list[Cell]:
    if comparison is None:
        return [Words("reference" if scored else "–"), *[Words("–")] * 4]
    effect, test, ours = comparison.effect, comparison.test, comparison.ours
    if effect is None or test is None or comparison.p is None:
        return [Words(comparison.reason), *[Words("–")] * 4]
    return [
        Number(effect.difference, f"{100 * effect.difference:+.2f}", ours),
        Words(f"{100 * effect.low:+.2f} to {100 * effect.high:+.2f}", ours),
        Number(effect.superiority, f"{effect.superiority:.2f}", ours),
        Number(comparison.p, p_words(comparison.p, comparison.adjusted is not None), ours),
        Number(test.two_sided, p_words(test.two_sided), ours),
    ]


def _notes(reference: Setting | None, choice: Choice) -> list[str]:
    notes = ["Mean ± standard deviation over seeds, and differences, in percent."]
    if reference is not None:
        paired = " of paired seeds" if choice.paired else ""
        holm = ", the one-sided one after Holm's correction over the table" if choice.holm else ""
        notes += [
            f"Differences are to {reference.label}, the best of the methods that do not train the "
            "tasks together (or the first setting, where there is none).",
            f"p: permutation test{paired}, one-sided (better) and two-sided (different){holm}; "
            f"bold: one-sided p below {LEVEL}.",
            "Interval: percentile bootstrap of the difference; with few seeds it is too narrow. "
            "Superiority: the share of pairs of runs in which this setting's is the better.",
        ]
    notes.append("FLOPs: of training passes, mean over seeds. Time: of all stages, with dev.")
    return notes
