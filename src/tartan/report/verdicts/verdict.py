"""Finds the winning setting of a benchmark, its lead, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.verdicts.comparison import Comparison, ComparisonOptions, adjust, compare
from tartan.report.verdicts.overview import comparisons_of
from tartan.report.verdicts.ranking import ranking_of
from tartan.run_folder.result import Part


@dataclass(frozen=True)
class Verdict:
    """The winning setting on a part of test, with its comparisons.

    Attributes:
        best: the setting with the highest mean.
        next_best: comparison of it with the setting of the second highest mean; None if there is
            none.
        claim: comparison of the best method that trains the tasks together with the best of the
            others, the higher one as `ours`; None unless there are both.
        left_out: settings that have a score, but too few seeds to be ranked.
    """

    best: Setting
    next_best: Comparison | None
    claim: Comparison | None
    left_out: tuple[Setting, ...] = ()


def verdict_of(bench: Benchmark, part: Part, choice: ComparisonOptions) -> Verdict | None:
    """Return the verdict of a part of test; None if no run has a score there.

    Its settings have the seeds that count (see `ranking_of`). Which side of a comparison is the
    higher one was read off the scores, so that its p is two-sided.
    """
    choice = choice.on(bench)
    ranking = ranking_of(bench.settings, part, paired=choice.paired)
    ranked = ranking.settings
    if not ranked:
        return None
    joint = [setting for setting in ranked if setting.is_joint]
    others = [setting for setting in ranked if not setting.is_joint]
    table = comparisons_of(bench, part, choice) if choice.holm else []
    claim = None
    if joint and others:
        higher, lower = sorted((joint[0], others[0]), key=ranked.index)
        claim = _compared(higher, lower, part, choice, table)
    next_best = None
    if len(ranked) > 1:
        next_best = _compared(ranked[0], ranked[1], part, choice, table)
    return Verdict(ranked[0], next_best, claim, ranking.left_out)


def _compared(
    higher: Setting,
    lower: Setting,
    part: Part,
    choice: ComparisonOptions,
    table: Sequence[Comparison],
) -> Comparison:
    """Compare two settings; Holm's correction counts them among the comparisons of `table`."""
    found = compare(higher, lower, part, paired=choice.paired)
    if not choice.holm:
        return found
    pair = {higher.key, lower.key}
    others = [one for one in table if {one.ours.key, one.theirs.key} != pair]
    return adjust([found, *others])[0]


def disagreements(whole: Verdict, unseen: Verdict) -> list[str]:
    """Return where the unseen part differs, in words that follow 'there'; empty if nowhere."""
    found = []
    if unseen.best.key != whole.best.key:
        found.append("another setting has the highest mean")
    pairs = [("the best and the next", whole.next_best, unseen.next_best)]
    pairs.append(("joint training and the best baseline", whole.claim, unseen.claim))
    for what, on_whole, on_unseen in pairs:
        if on_whole is None or on_unseen is None:
            continue
        was_joint = on_whole.ours.is_joint
        if what.startswith("joint") and was_joint != on_unseen.ours.is_joint:
            ahead = "the best baseline is" if was_joint else "joint training is"
            found.append(f"{ahead} ahead")
        if on_whole.significant != on_unseen.significant:
            is_it = "is" if on_unseen.significant else "is not"
            found.append(f"the difference between {what} {is_it} significant")
    return found
