"""Compares settings: two with each other, all with a reference, and the best with the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tartan.evaluation.statistics import Effect, PermutationTest, effect_of, holm, permutation_test
from tartan.report.settings import Benchmark, Setting
from tartan.runs.result import Part

LEVEL = 0.05
"""p-value below which a difference is called significant."""


@dataclass(frozen=True)
class ComparisonOptions:
    """Whether values of a seed belong together; whether p-values are adjusted over a table."""

    paired: bool = False
    holm: bool = False

    def on(self, bench: Benchmark) -> ComparisonOptions:
        """Return the options for a benchmark: where each seed draws its own data, seeds are pairs.

        What a draw makes easy or hard is then in both values of a pair, and not in the difference.
        """
        return replace(self, paired=self.paired or bench.draws_data)


@dataclass(frozen=True)
class Comparison:
    """A comparison of two settings on a part of test.

    Attributes:
        seeds: number of values on each side.
        effect: difference of the means, as shares of 1; None with fewer than two values on a side.
        test: the permutation test; None as `effect`.
        directed: whether it was fixed before looking at the scores which side has to be the better;
            only then may a one-sided p decide.
        adjusted: `p`, adjusted by Holm's correction over the table; None unless asked for.
        family: number of comparisons over which it is adjusted.
    """

    ours: Setting
    theirs: Setting
    part: Part
    seeds: tuple[int, int]
    effect: Effect | None = None
    test: PermutationTest | None = None
    paired: bool = False
    directed: bool = False
    adjusted: float | None = None
    family: int = 1

    @property
    def unadjusted(self) -> float | None:
        """The one-sided p of a directed comparison, else the two-sided one."""
        if self.test is None:
            return None
        return self.test.one_sided if self.directed else self.test.two_sided

    @property
    def p(self) -> float | None:
        """The p-value that decides: the adjusted one, if it was asked for."""
        return self.unadjusted if self.adjusted is None else self.adjusted

    @property
    def smallest(self) -> float:
        """The smallest two-sided p that so few values, over so many comparisons, can have."""
        return 1.0 if self.test is None else min(1.0, self.test.smallest_two_sided * self.family)

    @property
    def significant(self) -> bool:
        """Whether ours is better, with p below `LEVEL`."""
        if self.effect is None or self.p is None:
            return False
        return self.effect.difference > 0 and self.p < LEVEL

    @property
    def lead(self) -> float:
        """Difference of the means over all seeds, also of one."""
        return self.ours.mean(self.part) - self.theirs.mean(self.part)

    @property
    def needs(self) -> str:
        """What it takes to compare them."""
        return f"needs two seeds {'that both have' if self.paired else 'on each side'}"


def compare(
    ours: Setting, theirs: Setting, part: Part, *, paired: bool = False, directed: bool = False
) -> Comparison:
    """Test whether `ours` differs from `theirs`, or is better; of pairs, shared seeds count."""
    left, right = ours.scores(part), theirs.scores(part)
    if paired:
        shared = sorted(left.keys() & right.keys())
        left, right = ({seed: scores[seed] for seed in shared} for scores in (left, right))
    seeds, values = (len(left), len(right)), (list(left.values()), list(right.values()))
    if min(seeds) < 2:
        return Comparison(ours, theirs, part, seeds, paired=paired, directed=directed)
    effect = effect_of(*values, paired=paired)
    test = permutation_test(*values, paired=paired)
    return Comparison(ours, theirs, part, seeds, effect, test, paired, directed)


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the same comparisons, with p-values adjusted by Holm's correction."""
    values = [p for one in comparisons if (p := one.unadjusted) is not None]
    adjusted = iter(holm(values))
    return [
        one if one.unadjusted is None else replace(one, adjusted=next(adjusted), family=len(values))
        for one in comparisons
    ]


def ranking_of(
    settings: Sequence[Setting], part: Part, *, paired: bool = False
) -> tuple[list[Setting], list[Setting]]:
    """Return settings by their mean on a part of test, the highest first, and those left out.

    Where some have two seeds, those with one are left out: nothing could be tested against them,
    and the highest of few seeds is high by chance more often. Of pairs, settings are also left out,
    those with the fewest seeds first, until the others share two seeds; they have these seeds only.
    """
    scored = [setting for setting in settings if setting.scores(part)]
    least = min(2, max((len(setting.scores(part)) for setting in scored), default=0))
    kept = [setting for setting in scored if len(setting.scores(part)) >= least]

    def shared() -> set[int]:
        return set.intersection(*(set(setting.scores(part)) for setting in kept))

    while paired and kept and len(shared()) < least:
        kept.remove(min(reversed(kept), key=lambda setting: len(setting.scores(part))))
    left_out = [setting for setting in scored if setting not in kept]
    if paired and kept:
        seeds = shared()
        kept = [setting.of_seeds(seeds) for setting in kept]
    kept.sort(key=lambda setting: -setting.mean(part))
    return kept, left_out


def reference_of(
    settings: Sequence[Setting], part: Part, *, paired: bool = False
) -> tuple[Setting | None, list[Setting]]:
    """Return the setting to compare with, and the baselines that were not considered for it.

    It is the best baseline, or else the first setting with equal task weights, or else the first
    with a score; one of several seeds rather than of one. A baseline is a method that does not
    train the tasks together.
    """
    scored = [setting for setting in settings if setting.scores(part)]
    baselines = [setting for setting in scored if not setting.result.is_joint]
    if not baselines:
        scored.sort(key=lambda s: (len(s.scores(part)) == 1, s.result.weighting != "uniform"))
        return next(iter(scored), None), []
    ranked, left_out = ranking_of(baselines, part, paired=paired)
    return next(one for one in baselines if one.key == ranked[0].key), left_out


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


@dataclass(frozen=True)
class Verdict:
    """The setting with the highest mean on a part of test, with its comparisons.

    Attributes:
        next_best: its comparison with the second; None if there is none.
        claim: comparison of the best method that trains the tasks together with the best of the
            others, the higher one as `ours`; None unless there are both.
        left_out: settings that have a score, but too few seeds to be ranked.
    """

    best: Setting
    next_best: Comparison | None
    claim: Comparison | None
    left_out: list[Setting]


def verdict_of(bench: Benchmark, part: Part, choice: ComparisonOptions) -> Verdict | None:
    """Return the verdict of a part of test; None if no run has a score there.

    Which side of a comparison is the higher one was read off the scores, so that its p is
    two-sided.
    """
    choice = choice.on(bench)
    ranked, left_out = ranking_of(bench.settings, part, paired=choice.paired)
    if not ranked:
        return None
    table = comparisons_of(bench, part, choice) if choice.holm else []

    def compared(higher: Setting, lower: Setting) -> Comparison:
        one = compare(higher, lower, part, paired=choice.paired)
        if not choice.holm:
            return one
        pair = {higher.key, lower.key}  # counted once among the table's comparisons
        return adjust([one, *(o for o in table if {o.ours.key, o.theirs.key} != pair)])[0]

    joint = [setting for setting in ranked if setting.result.is_joint]
    others = [setting for setting in ranked if not setting.result.is_joint]
    claim = None
    if joint and others:
        claim = compared(*sorted((joint[0], others[0]), key=ranked.index))
    next_best = compared(*ranked[:2]) if len(ranked) > 1 else None
    return Verdict(ranked[0], next_best, claim, left_out)
