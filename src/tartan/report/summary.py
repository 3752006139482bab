"""Writes the report's sentences: which setting wins where, by how much, and how certainly."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tartan.report.comparison import LEVEL, ComparisonOptions, best_against_others
from tartan.report.groups import Benchmark
from tartan.report.runs import Folders
from tartan.report.tables import score_of
from tartan.report.words import rendered, sentences


def inventory(folders: Folders, benches: Sequence[Benchmark]) -> str:
    """Return a sentence on how many runs of which kinds were read."""
    results = [run.result for run in folders.runs]
    settings = [setting for bench in benches for setting in bench.settings]
    adapted = sum(result.only_adapts for result in results)
    return rendered(
        "inventory.txt",
        folders=folders,
        adapted=adapted,
        untested=sum(not result.is_tested for result in results) - adapted,
        repeated=sorted(run.name for setting in settings for run in setting.repeated),
        settings=len(settings),
        benches=len(benches),
    )


def sentences_of(bench: Benchmark, choice: ComparisonOptions) -> list[str]:
    """Return the sentences that a benchmark's runs and their number allow."""
    ranked, compared = best_against_others(bench, "whole", choice)
    unseen, compared_unseen = best_against_others(bench, "unseen", choice)
    if not ranked:
        return []
    keys = {setting.key for setting in ranked}
    tests = [run.result.test for run in bench.runs]
    scores = {
        run.result.seed: (one.dev[run.result.metric], one.test[run.result.metric])
        for run in bench.runs
        for one in run.result.baselines
        if one.name == "tf_idf" and one.test
    }
    means = [100 * fmean(column) for column in zip(*scores.values(), strict=True)]
    return sentences(
        "summary.txt",
        bench=bench,
        best=ranked[0],
        compared=compared,
        not_ranked=[s for s in bench.settings if s.key not in keys and s.scores("whole")],
        no_overlap=all(test.unseen.examples == test.whole.examples for test in tests),
        counts=f"{tests[0].unseen.examples:,} of {tests[0].whole.examples:,}",
        unseen=unseen,
        compared_unseen=compared_unseen,
        tf_idf=[*means, len(scores)] if scores else None,
        score_of=score_of,
        level=LEVEL,
    )
