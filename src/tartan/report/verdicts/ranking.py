"""Ranks settings by their mean on test, over seeds that allow a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tartan.report.reading.grouping import Setting
from tartan.run_folder.result import Part


@dataclass(frozen=True)
class Ranking:
    """Settings by their mean.

    Attributes:
        settings: the ranked settings, the highest mean first; of pairs only with the seeds that all
            of them have.
        left_out: settings with a score that are not ranked, in their order.
    """

    settings: tuple[Setting, ...]
    left_out: tuple[Setting, ...]


def ranking_of(settings: Sequence[Setting], part: Part, *, paired: bool = False) -> Ranking:
    """Rank settings by their mean on a part of test.

    Where some have two seeds, those with one are left out: nothing could be tested against them,
    and the highest of few seeds is high by chance more often. Of pairs, settings are also left out,
    those with the fewest seeds first, until the others share two seeds.

    Args:
        settings: the settings; those without a score are not ranked.
        part: the part of test.
        paired: whether values of the same seed belong together; only seeds that all ranked settings
            have then count.
    """
    scored = [setting for setting in settings if setting.scores(part)]
    least = min(2, max((len(setting.scores(part)) for setting in scored), default=0))
    kept = [setting for setting in scored if len(setting.scores(part)) >= least]
    if paired:
        while kept and len(_shared(kept, part)) < least:
            kept.remove(min(reversed(kept), key=lambda setting: len(setting.scores(part))))
    left_out = tuple(setting for setting in scored if setting not in kept)
    if paired and kept:
        seeds = _shared(kept, part)
        kept = [setting.of_seeds(seeds) for setting in kept]
    kept.sort(key=lambda setting: -fmean(setting.scores(part).values()))
    return Ranking(tuple(kept), left_out)


def _shared(settings: Sequence[Setting], part: Part) -> set[int]:
    return set.intersection(*(set(setting.scores(part)) for setting in settings))
