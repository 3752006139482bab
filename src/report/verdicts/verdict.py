"""Finds the winning setting of a benchmark, its lead, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from src.report.labels import JOINT
from src.report.reading.grouping import Benchmark, Setting
from src.report.verdicts.comparison import Comparison, compare
from src.run_folder.result import Part


@dataclass(frozen=True)
class Verdict:
    """The winning setting on a part of test, with its comparisons.

    Attributes:
        best: the setting with the highest mean.
        next_best: comparison of it with the setting of the second highest mean; None if there is
            none.
        claim: comparison of the best method that trains the tasks together with the best of the
            others, the higher one as `ours`; None unless there are both.
    """

    best: Setting
    next_best: Comparison | None
    claim: Comparison | None


def verdict_of(bench: Benchmark, part: Part, *, paired: bool = False) -> Verdict | None:
    """Return the verdict of a part of test; None if no run has a score there."""
    ranked = sorted(
        (setting for setting in bench.settings if setting.scores(part)),
        key=lambda setting: -fmean(setting.scores(part).values()),
    )
    if not ranked:
        return None
    joint = [setting for setting in ranked if setting.method in JOINT]
    others = [setting for setting in ranked if setting.method not in JOINT]
    claim = None
    if joint and others:
        higher, lower = sorted((joint[0], others[0]), key=ranked.index)
        claim = compare(higher, lower, part, paired=paired)
    next_best = compare(ranked[0], ranked[1], part, paired=paired) if len(ranked) > 1 else None
    return Verdict(ranked[0], next_best, claim)


def disagreements(whole: Verdict, unseen: Verdict) -> list[str]:
    """Return where the unseen part differs, in words that follow 'there'; empty if nowhere."""
    found = []
    if unseen.best is not whole.best:
        found.append("another setting has the highest mean")
    pairs = [("the best and the next", whole.next_best, unseen.next_best)]
    pairs.append(("joint training and the best baseline", whole.claim, unseen.claim))
    for what, on_whole, on_unseen in pairs:
        if on_whole is None or on_unseen is None:
            continue
        if what.startswith("joint") and on_whole.ours.method != on_unseen.ours.method:
            was_joint = on_whole.ours.method in JOINT
            if was_joint != (on_unseen.ours.method in JOINT):
                ahead = "the best baseline is" if was_joint else "joint training is"
                found.append(f"{ahead} ahead")
        if on_whole.significant != on_unseen.significant:
            is_it = "is" if on_unseen.significant else "is not"
            found.append(f"the difference between {what} {is_it} significant")
    return found
