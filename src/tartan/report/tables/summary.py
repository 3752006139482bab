"""Writes the report's sentences: which setting wins where, by how much, and how certainly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tartan.evaluation.statistics import Interval
from tartan.report.labels import PART_LABELS, plural
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.reading.run import Run
from tartan.report.reading.search import Found
from tartan.report.tables.table import interval_words, p_words, score_of
from tartan.report.verdicts.comparison import LEVEL, Comparison, ComparisonOptions
from tartan.report.verdicts.verdict import Verdict, disagreements, verdict_of
from tartan.run_folder.result import Part, Split


@dataclass(frozen=True)
class Linked:
    """Words with a link to the runs behind them."""

    words: str
    setting: Setting


Sentence = tuple[str | Linked, ...]


def in_words(sentence: Sentence) -> str:
    """Return a sentence without its links."""
    return "".join(part if isinstance(part, str) else part.words for part in sentence)


def inventory(found: Found, benches: Sequence[Benchmark]) -> Sentence:
    """Return a sentence on how many runs of which kinds were read."""
    parts = [plural(len(found.runs), "finished run")]
    adapted = [run for run in found.runs if run.result.only_adapts]
    untested = sum(not run.result.is_tested for run in found.runs) - len(adapted)
    if untested:
        parts.append(
            f"{untested} of them not evaluated on test (a search, or task.test_share=0), so not "
            "compared"
        )
    if adapted:
        parts.append(
            f"{plural(len(adapted), 'adapted encoder')} ({'; '.join(map(_adapted_words, adapted))})"
        )
    settings = [setting for bench in benches for setting in bench.settings]
    repeated = sorted(run.name for setting in settings for run in setting.repeated)
    if repeated:
        parts.append(
            f"{plural(len(repeated), 'older run')} of a setting and seed that have a newer one "
            f"(not counted: {'; '.join(repeated)})"
        )
    if found.unreadable:
        parts.append(f"{len(found.unreadable)} that cannot be read")
    return (
        f"{', '.join(parts)}; {plural(len(settings), 'setting')} (runs that differ by their seed "
        f"alone) in {plural(len(benches), 'comparison')}.",
    )


def _adapted_words(run: Run) -> str:
    """Return a sentence about an adapted encoder and its perplexity on held-out text."""
    result = run.result
    held_out = plural(result.dev.whole.examples, "held-out text")
    return f"{run.name}: {result.encoder}, {result.metric} {result.dev_score:.3f} on {held_out}"


def sentences_of(bench: Benchmark, choice: ComparisonOptions) -> list[Sentence]:
    """Return the sentences that a benchmark's runs and their number allow."""
    whole = verdict_of(bench, "whole", choice)
    if whole is None:
        return []
    sentences = _sentences(bench, whole, "whole")
    if whole.left_out:
        sentences.append(_left_out(whole.left_out, "whole"))
    if bench.draws_data and whole.next_best is not None:
        sentences.append((_PAIRED,))
    return [*sentences, *_unseen(bench, whole, choice), *_tf_idf(bench)]


_EQUAL = "an equal mean"
_PAIRED = (
    "Each seed draws its own data (task.split_seed is the run's seed), so that runs of the same "
    "seed are compared with each other."
)


def _left_out(settings: Sequence[Setting], part: Part) -> Sentence:
    """Return which settings were not ranked."""
    told: list[str | Linked] = ["Not ranked, as too few seeds compare with the others': "]
    for place, setting in enumerate(settings):
        told += [", " if place else "", _named(setting), " with ", _score(setting, part)]
        told.append(f" ({_seeds(setting, part)})")
    return (*told, ".")


def _sentences(bench: Benchmark, verdict: Verdict, part: Part) -> list[Sentence]:
    best = verdict.best
    if verdict.next_best is None:
        only: Sentence = (
            _named(best),
            f" is the only setting{' to rank' if verdict.left_out else ''}: ",
            _score(best, part),
            f" {bench.metric_label} on the {PART_LABELS[part]} ({_seeds(best, part)}). ",
            "There is nothing to compare it with.",
        )
        return [only]
    runner_up = verdict.next_best.theirs
    first: Sentence = (
        _named(best),
        f" has the highest mean {bench.metric_label} on the {PART_LABELS[part]}, ",
        _score(best, part),
        f" ({_seeds(best, part)}{', the same of all' * verdict.next_best.paired}). Next is ",
        _named(runner_up),
        " with ",
        _score(runner_up, part),
        f" ({_seeds(runner_up, part)}), {_difference(verdict.next_best)}",
        *_caution(bench, verdict.next_best),
    )
    claim = verdict.claim
    if claim is None or {claim.ours, claim.theirs} == {best, runner_up}:
        return [first]
    joint, baseline = "joint training with the highest mean", "best baseline"
    ahead, behind = (joint, baseline) if claim.ours.is_joint else (baseline, joint)
    is_ahead = "is level with" if _points_less(_lead(claim)) == _EQUAL else "is ahead of"
    second: Sentence = (
        f"The {ahead}, ",
        _named(claim.ours),
        f", {is_ahead} the {behind}, ",
        _named(claim.theirs),
        ", which has ",
        _score(claim.theirs, part),
        f", {_difference(claim)}",
        *_caution(bench, claim),
    )
    return [first, second]


def _caution(bench: Benchmark, comparison: Comparison) -> Sentence:
    """Return what the p-value of a significant winner does not cover."""
    count = len(bench.settings)
    if not comparison.significant or count < 3:
        return ()
    return (f" But it was picked from {count} settings by this same split: p flatters it.",)


def _difference(comparison: Comparison) -> str:
    """Return the difference in words, and whether chance may explain it."""
    effect, test = comparison.effect, comparison.test
    if effect is None or test is None:
        apart = _points_less(_lead(comparison))
        return f"{apart}. Whether that is chance cannot be told: the test {comparison.reason}."
    interval = "the seeds do not vary: there is no interval"
    if effect.interval is not None:
        less = Interval(-effect.interval.high, -effect.interval.low)  # signed as in the table
        interval = f"95% interval of the difference {interval_words(less, signed=True)}"
    apart = f"{_points_less(effect.difference)} ({interval})"
    assert comparison.p is not None
    adjusted = comparison.adjusted is not None
    p = f"two-sided p = {p_words(comparison.p, adjusted)}".replace("= <", "< ")
    if comparison.significant:
        return f"{apart}: significantly so ({p})."
    words = f"{apart}. That is not significant ({p})"
    if comparison.smallest >= LEVEL:
        corrected = f" and {comparison.family} comparisons" if comparison.family > 1 else ""
        return (
            f"{words}, and could not be: with {_sides(comparison)}{corrected} "
            f"the smallest two-sided p is {comparison.smallest:.3f}."
        )
    return f"{words}."


def _points_less(difference: float) -> str:
    """Return by how much the second of two means is lower, as far as it is shown."""
    points = f"{100 * difference:.2f}"
    return _EQUAL if float(points) == 0 else f"{points} points less"


def _lead(comparison: Comparison) -> float:
    """Return by how much the first of two means is higher."""
    sides = comparison.ours.scores(comparison.part), comparison.theirs.scores(comparison.part)
    return fmean(sides[0].values()) - fmean(sides[1].values())


def _sides(comparison: Comparison) -> str:
    ours, theirs = comparison.seeds
    return plural(ours, "pair") if comparison.paired else f"{ours} and {theirs} seeds"


def _unseen(bench: Benchmark, whole: Verdict, choice: ComparisonOptions) -> list[Sentence]:
    """Return where the unseen part of test agrees with the whole, and where not."""
    if not any(test.unseen.examples < test.whole.examples for test in bench.tests):
        return [("No test text is in train: the whole split is the unseen part.",)]
    unseen = verdict_of(bench, "unseen", choice)
    if unseen is None:
        return [("Every test text is in train, too: there is no unseen part to look at.",)]
    counts = _counts(bench.tests)
    found = disagreements(whole, unseen)
    best = unseen.best
    score = _score(best, "unseen")
    if not found:
        start = f"The test texts not in train ({counts}) agree: the best is the same, with "
        return [(start, score, ".")]
    start = f"The test texts not in train ({counts}) disagree: there {'; and '.join(found)}. "
    return [(start, "Highest there: ", _named(best), " with ", score, ".")]


def _tf_idf(bench: Benchmark) -> list[Sentence]:
    """Return a sentence with the scores of TF-IDF on the whole splits, if the runs have them."""
    found = {
        run.result.seed: (baseline.dev[run.result.metric], baseline.test[run.result.metric])
        for run in bench.runs
        for baseline in run.result.baselines
        if baseline.name == "tf_idf" and baseline.test
    }
    if not found:
        return []
    dev, test = (f"{100 * fmean(values):.2f}" for values in zip(*found.values(), strict=True))
    seeds = f", mean of {plural(len(found), 'seed')}" if len(set(found.values())) > 1 else ""
    sentence = (
        f"TF-IDF with logistic regression, its settings chosen on dev, reaches {test} on the whole "
        f"test split ({dev} on dev{seeds})."
    )
    return [(sentence,)]


def _counts(tests: Sequence[Split]) -> str:
    """Return the sizes of the unseen part and of the whole, which drawn data may give a range."""
    parts = [[t.unseen.examples for t in tests], [t.whole.examples for t in tests]]
    ranges = [
        f"{min(own):,}" if min(own) == max(own) else f"{min(own):,} to {max(own):,}"
        for own in parts
    ]
    return " of ".join(ranges)


def _named(setting: Setting) -> Linked:
    return Linked(setting.label, setting)


def _score(setting: Setting, part: Part) -> Linked:
    return Linked(score_of(setting, part).words, setting)


def _seeds(setting: Setting, part: Part) -> str:
    return plural(len(setting.scores(part)), "seed")
