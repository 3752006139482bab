"""Compares settings: two with each other, all with a reference, and the best with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tartan.evaluation.statistics import Effect, PermutationTest, effect_of, holm, permutation_test
from tartan.report.groups import Benchmark, Setting
from tartan.runs.result import Part

LEVEL = 0.05
"""p-value below which a difference is called significant."""


@dataclass(frozen=True)
class ComparisonOptions:
    """Whether values of a seed belong together; whether p-values are adjusted over a table."""

    paired: bool = False
    holm: bool = False


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


def comparisons_of(bench: Benchmark, part: Part, choice: ComparisonOptions) -> list[Comparison]:
    """Return the comparison of every other setting with the reference."""
    reference = reference_of(bench, part)
    compared = [
        compare(setting, reference, part, paired=bench.paired)
        for setting in bench.settings
        if reference is not None and setting is not reference
    ]
    return adjust(compared) if choice.holm else compared


def best_against_others(
    bench: Benchmark, part: Part, choice: ComparisonOptions
) -> tuple[list[Setting], list[Comparison]]:
    """Return the ranking, and the two-sided comparisons of its first with each other."""
    ranked = ranking_of(bench.settings, part, paired=bench.paired)
    compared = [compare(ranked[0], other, part, paired=bench.paired) for other in ranked[1:]]
    return ranked, adjust(compared) if choice.holm else compared
