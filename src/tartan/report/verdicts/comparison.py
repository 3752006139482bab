"""Compares two settings of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tartan.evaluation.statistics import Effect, PermutationTest, effect_of, holm, permutation_test
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.run_folder.result import Part

LEVEL = 0.05
"""p-value below which a difference is called significant."""


@dataclass(frozen=True)
class ComparisonOptions:
    """Options of comparisons.

    Attributes:
        paired: whether values of the same seed belong together.
        holm: whether p-values are adjusted for their number in a table.
    """

    paired: bool = False
    holm: bool = False

    def on(self, bench: Benchmark) -> ComparisonOptions:
        """Return the options for a benchmark: where each seed draws its own data, seeds are pairs.

        What a draw makes easy or hard is then in both values of a pair, and not in the difference.
        """
        return replace(self, paired=self.paired or bench.draws_data)


@dataclass(frozen=True)
class Comparison:
    """A comparison of `ours` with `theirs` on a part of test.

    Attributes:
        ours: the setting in question.
        theirs: the setting that it is compared with.
        part: the part of test.
        seeds: number of values on each side.
        effect: difference of the means, as shares of 1; None where it cannot be computed.
        test: the permutation test; None where it cannot be computed.
        paired: whether values of the same seed belong together.
        directed: whether it was fixed before looking at the scores which side has to be the better;
            only then may a one-sided p decide.
        adjusted: `p`, adjusted by Holm's correction over the table; None unless asked for.
        family: number of comparisons over which it is adjusted.
        reason: why there is no comparison; empty if there is one.
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
    reason: str = ""

    @property
    def p(self) -> float | None:
        """The p-value that decides: the adjusted one, if it was asked for."""
        return self.unadjusted if self.adjusted is None else self.adjusted

    @property
    def smallest(self) -> float:
        """The smallest two-sided p that so few values, over so many comparisons, can have."""
        return 1.0 if self.test is None else min(1.0, self.test.smallest_two_sided * self.family)

    @property
    def unadjusted(self) -> float | None:
        """The one-sided p of a directed comparison, else the two-sided one."""
        if self.test is None:
            return None
        return self.test.one_sided if self.directed else self.test.two_sided

    @property
    def significant(self) -> bool:
        """Whether ours is better, with p below `LEVEL`."""
        if self.effect is None or self.p is None:
            return False
        return self.effect.difference > 0 and self.p < LEVEL


def compare(
    ours: Setting,
    theirs: Setting,
    part: Part,
    *,
    paired: bool = False,
    directed: bool = False,
) -> Comparison:
    """Test whether `ours` differs from `theirs`, or is better.

    Args:
        ours: the setting in question.
        theirs: the setting to compare with.
        part: the part of test.
        paired: whether values of the same seed belong together; only seeds of both then count.
        directed: see `Comparison`.
    """
    left, right = ours.scores(part), theirs.scores(part)
    if paired:
        shared = sorted(left.keys() & right.keys())
        left, right = ({s: scores[s] for s in shared} for scores in (left, right))
    seeds = (len(left), len(right))
    if min(seeds) < 2:
        needed = "two seeds that both have" if paired else "two seeds on each side"
        return Comparison(ours, theirs, part, seeds, paired=paired, reason=f"needs {needed}")
    values = list(left.values()), list(right.values())
    return Comparison(
        ours,
        theirs,
        part,
        seeds,
        effect=effect_of(*values, paired=paired),
        test=permutation_test(*values, paired=paired),
        paired=paired,
        directed=directed,
    )


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the same comparisons, with p-values adjusted by Holm's correction."""
    values = [p for one in comparisons if (p := one.unadjusted) is not None]
    adjusted = iter(holm(values))
    return [
        one if one.unadjusted is None else replace(one, adjusted=next(adjusted), family=len(values))
        for one in comparisons
    ]
