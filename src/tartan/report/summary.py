"""Writes the report's sentences: which setting wins where, by how much, and how certainly."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tartan.evaluation.statistics import Interval
from tartan.report.comparison import LEVEL, Comparison, ComparisonOptions, Verdict, verdict_of
from tartan.report.runs import Folders
from tartan.report.settings import PART_LABELS, Benchmark, Setting, plural
from tartan.report.tables import interval_words, p_words, score_of
from tartan.runs.result import Part, Split


def inventory(folders: Folders, benches: Sequence[Benchmark]) -> str:
    """Return a sentence on how many runs of which kinds were read."""
    parts = [plural(len(folders.runs), "finished run")]
    results = {run.name: run.result for run in folders.runs}
    adapted = [
        f"{name}: {r.encoder}, {r.metric} {r.dev_score:.3f} on "
        f"{plural(r.dev.whole.examples, 'held-out text')}"
        for name, r in results.items()
        if r.only_adapts
    ]
    untested = sum(not result.is_tested for result in results.values()) - len(adapted)
    if untested:
        parts.append(f"{untested} of them not evaluated on test, so not compared")
    if adapted:
        parts.append(f"{plural(len(adapted), 'adapted encoder')} ({'; '.join(adapted)})")
    settings = [setting for bench in benches for setting in bench.settings]
    repeated = sorted(run.name for setting in settings for run in setting.repeated)
    if repeated:
        parts.append(
            f"{plural(len(repeated), 'older run')} of a setting and seed that have a newer one "
            f"(not counted: {'; '.join(repeated)})"
        )
    if folders.unreadable:
        parts.append(f"{len(folders.unreadable)} that cannot be read")
    return (
        f"{', '.join(parts)}; {plural(len(settings), 'setting')} (runs that differ by their seed "
        f"alone) in {plural(len(benches), 'comparison')}."
    )


def sentences_of(bench: Benchmark, choice: ComparisonOptions) -> list[str]:
    """Return the sentences that a benchmark's runs and their number allow."""
    whole = verdict_of(bench, "whole", choice)
    if whole is None:
        return []
    sentences = _winner(bench, whole)
    if whole.left_out:
        scores = (f"{s.label} with {_score(s, 'whole')}" for s in whole.left_out)
        few = "Not ranked, as too few seeds compare with the others'"
        sentences.append(f"{few}: {', '.join(scores)}.")
    if bench.draws_data and whole.next_best is not None:
        sentences.append(
            "Each seed draws its own data, so that runs of the same seed are compared."
        )
    return [*sentences, _unseen(bench, whole, choice), *_tf_idf(bench)]


def _winner(bench: Benchmark, verdict: Verdict) -> list[str]:
    best, comparison, claim = verdict.best, verdict.next_best, verdict.claim
    where = f"{bench.metric_label} on the {PART_LABELS['whole']}"
    if comparison is None:
        rest = " There is nothing to compare it with."
        return [f"{best.label} alone is ranked: {_score(best, 'whole')} {where}.{rest}"]
    sentences = [
        f"{best.label} has the highest mean {where}, {_score(best, 'whole')}. Next is "
        f"{comparison.theirs.label} with {_score(comparison.theirs, 'whole')}, "
        f"{_difference(comparison)}"
    ]
    if claim is not None and {claim.ours, claim.theirs} != {best, comparison.theirs}:
        joint, baseline = "joint training with the highest mean", "best baseline"
        ahead, behind = (joint, baseline) if claim.ours.result.is_joint else (baseline, joint)
        level = "is level with" if _is_level(claim.lead) else "is ahead of"
        sentences.append(
            f"The {ahead}, {claim.ours.label}, {level} the {behind}, {claim.theirs.label}, which "
            f"has {_score(claim.theirs, 'whole')}, {_difference(claim)}"
        )
    several = len(bench.settings) > 2
    if several and any(one is not None and one.significant for one in (comparison, claim)):
        count = len(bench.settings)
        sentences[-1] += f" Picked from {count} settings by this same split: p flatters the best."
    return sentences


def _difference(comparison: Comparison) -> str:
    """Return the difference in words, and whether chance may explain it."""
    effect, p = comparison.effect, comparison.p
    apart = f"{100 * (effect.difference if effect else comparison.lead):.2f} points less"
    if _is_level(effect.difference if effect else comparison.lead):
        apart = "an equal mean"
    if effect is None or p is None:
        return f"{apart}. Whether that is chance cannot be told: the test {comparison.needs}."
    if effect.interval is None:
        apart += " (the seeds do not vary: there is no interval)"
    else:  # signed as in the table
        less = Interval(-effect.interval.high, -effect.interval.low)
        apart += f" (95% interval of the difference {interval_words(less, signed=True)})"
    shown = f"two-sided p = {p_words(p, comparison.adjusted is not None)}".replace("= <", "< ")
    if comparison.significant:
        return f"{apart}: significantly so ({shown})."
    words = f"{apart}. That is not significant ({shown})"
    if comparison.smallest < LEVEL:
        return f"{words}."
    ours, theirs = comparison.seeds
    sides = plural(ours, "pair") if comparison.paired else f"{ours} and {theirs} seeds"
    family = f" and {comparison.family} comparisons" if comparison.family > 1 else ""
    smallest = f"the smallest two-sided p is {comparison.smallest:.3f}"
    return f"{words}, and could not be: with {sides}{family} {smallest}."


def _is_level(difference: float) -> bool:
    """Return whether a difference is 0 as far as it is shown."""
    return float(f"{100 * difference:.2f}") == 0


def _unseen(bench: Benchmark, whole: Verdict, choice: ComparisonOptions) -> str:
    """Return where the unseen part of test agrees with the whole, and where not."""
    if not any(test.unseen.examples < test.whole.examples for test in bench.tests):
        return "No test text is in train: the whole split is the unseen part."
    unseen = verdict_of(bench, "unseen", choice)
    if unseen is None:
        return "Every test text is in train, too: there is no unseen part to look at."
    start = f"On the test texts not in train ({_counts(bench.tests)}) the highest mean is"
    best = "the same setting's" if unseen.best.key == whole.best.key else f"{unseen.best.label}'s"
    sentence = f"{start} {best}, {_score(unseen.best, 'unseen')}"
    if unseen.next_best is None:
        return f"{sentence}."
    leads = "significantly" if unseen.next_best.significant else "not significantly"
    return f"{sentence}, {leads} above the next."


def _tf_idf(bench: Benchmark) -> list[str]:
    """Return a sentence with the scores of TF-IDF on the whole splits, if the runs have them."""
    scores = {
        run.result.seed: (baseline.dev[run.result.metric], baseline.test[run.result.metric])
        for run in bench.runs
        for baseline in run.result.baselines
        if baseline.name == "tf_idf" and baseline.test
    }
    if not scores:
        return []
    dev, test = (f"{100 * fmean(values):.2f}" for values in zip(*scores.values(), strict=True))
    seeds = f", mean of {plural(len(scores), 'seed')}" if len(set(scores.values())) > 1 else ""
    return [
        f"TF-IDF with logistic regression, its settings chosen on dev, reaches {test} on the whole "
        f"test split ({dev} on dev{seeds})."
    ]


def _counts(tests: Sequence[Split]) -> str:
    """Return the sizes of the unseen part and of the whole, which drawn data may give a range."""
    ranges = []
    for sizes in ([t.unseen.examples for t in tests], [t.whole.examples for t in tests]):
        low, high = min(sizes), max(sizes)
        ranges.append(f"{low:,}" if low == high else f"{low:,} to {high:,}")
    return " of ".join(ranges)


def _score(setting: Setting, part: Part) -> str:
    return f"{score_of(setting, part).words} ({plural(len(setting.scores(part)), 'seed')})"
