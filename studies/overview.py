"""Writes the beginning of the page of results: the main table, ranks over tasks, and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean

from scipy.stats import rankdata

from studies.estimate import (
    LEAST_SEEDS,
    SeedMean,
    Verdict,
    answer,
    by_seed,
    contrast_of,
    has_runs,
)
from studies.format import NONE, interval_words, markdown_table, mean_words, p_of, signed
from studies.part import Contrast, Part, Question
from studies.published import published_score
from studies.row import Row
from tartan.report.settings import metric_label

_CLAIM = "Claim "
"""Beginning of the statements that are the paper's."""
_UNDECIDED: Verdict = "not decided"


def overview_of(parts: Mapping[str, Part], rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield the blocks of the page's beginning, as Markdown.

    Args:
        parts: the parts by name, in order.
        rows: the rows of each part.
    """
    scores = list(chain.from_iterable(_scores(part, rows[name]) for name, part in parts.items()))
    if not scores:
        return
    yield "## In short"
    yield _SCORES
    yield markdown_table(scores, left=3)
    yield from _over_cases([_means(part, rows[name]) for name, part in parts.items()])
    yield from _answers(parts, rows)


_SCORES = """\
The four methods with their plain settings, all at the budget 3x (below; budget and cells were
chosen after the rows of few labels had been seen): scores on test in percent, and differences from
fine-tuning, seed by seed. The paper's scores are of RoBERTa-base, trained to convergence; its TAPT
starts from a released encoder. [More of the paper's](choosing.md#what-does-the-paper-gain)."""
_CASES = """\
Over the {cases} cases of this table that have all of the methods, each with at least {least} seeds:
the mean rank on test (1 is the best) and the mean difference from fine-tuning, with intervals over
the cases, of which some share a task."""
_ANSWERS = """\
Of {total} statements to test, {holds} hold, {refuted} do not, and {open} are not decided, {empty}
of them without runs. The paper's claims, with margins of ours, and the others that are decided,
whose numbers stand in their part. Those on few labels were mostly written after their first rows
had been seen, and some are decided on dev:"""


def _scores(part: Part, rows: Sequence[Row]) -> Iterator[dict[str, str]]:
    """Yield a line of the main table for each of the part's main cells that has rows."""
    for method, cell in part.main.items():
        own = [row for row in rows if row.cell == cell]
        if not own:
            continue
        first, test = own[0], SeedMean({row.seed: row.test for row in own})
        base = next(iter(part.main.values()))
        is_first = cell == base
        against = Contrast(plus=[cell], minus=[base])
        gain = None if is_first else contrast_of(against, rows, "test")
        yield {
            "task, metric": f"{first.task}, {metric_label(first.metric)}" if is_first else "",
            "labels": f"{first.labelled:,}" if is_first else "",
            "method": method,
            "seeds": str(len(own)),
            "test": mean_words(test),
            "95 %": interval_words(test),
            "against fine-tuning": signed(gain),
            "p": p_of(gain),
            "the paper": published_score(first.task, first.labelled, first.method) or NONE,
        }


def _means(part: Part, rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean on test of each main cell, over the seeds that all of them have.

    It is empty where these are too few.
    """
    found = {method: by_seed(cell, rows, "test") for method, cell in part.main.items()}
    seeds = set.intersection(*map(set, found.values())) if found else set()
    if len(seeds) < LEAST_SEEDS:
        return {}
    return {method: fmean(values[seed] for seed in seeds) for method, values in found.items()}


def _over_cases(means: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yield a table of ranks and differences over the cases that have all of the methods."""
    methods = max(map(tuple, means), key=len, default=())
    cases = [own for own in means if tuple(own) == methods]
    if not methods or len(cases) < LEAST_SEEDS:
        return
    yield _CASES.format(cases=len(cases), least=LEAST_SEEDS)
    ranks = [rankdata([-own[method] for method in methods]) for own in cases]
    lines = []
    for position, method in enumerate(methods):
        rank = SeedMean({case: float(own[position]) for case, own in enumerate(ranks)})
        gain = SeedMean({i: own[method] - own[methods[0]] for i, own in enumerate(cases)})
        lines.append(
            {
                "method": method,
                "mean rank": f"{rank.mean:.1f}",
                "95 %": interval_words(rank, 1, 1, len(methods)),
                "against fine-tuning": signed(gain if position else None),
            }
        )
    yield markdown_table(lines, left=1)


def _answers(parts: Mapping[str, Part], rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield how many statements hold, and a list of the paper's and of those that are decided."""
    asked = [
        (question, part.title.split(":")[0], rows[name], answer(question, rows[name]))
        for name, part in parts.items()
        for question in part.questions.values()
    ]
    counts = Counter(verdict for *_, verdict in asked)
    yield _ANSWERS.format(
        total=len(asked),
        holds=counts["holds"],
        refuted=counts["does not hold"],
        open=counts[_UNDECIDED],
        empty=sum(not has_runs(question, own) for question, _, own, _ in asked),
    )
    claims: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for question, part, own, verdict in asked:
        if question.statement.startswith(_CLAIM):
            told = "; ".join(_differences(question, own))
            found = f"**{verdict.capitalize()}** for {part}: {told}."
            claims.setdefault(question.statement, []).append(
                found if told else f"No runs yet for {part}."
            )
        elif verdict != _UNDECIDED:
            head = f"**{verdict.capitalize()}** for {part}:"
            others.setdefault(head, []).append(f"\n  - {question.statement}")
    lines = [f"- {statement} {' '.join(found)}" for statement, found in claims.items()]
    lines += [f"- {head}{''.join(found)}" for head, found in others.items()]
    yield "\n".join(lines)


def _differences(question: Question, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what each of a statement's contrasts shows, of those with runs."""
    for name, contrast in question.contrasts.items():
        found = contrast_of(contrast, rows, question.of)
        if found is not None:
            yield f"{name} {signed(found, question.is_in_points)}, p {p_of(found)}"
