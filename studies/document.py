"""Writes `docs/results.md` from the rows and the parts' questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from studies.estimate import LEAST_SEEDS, SeedMean, answer, contrast_of, has_runs
from studies.format import markdown_table, mean_of, mean_words, signed
from studies.overview import overview_of
from studies.part import Contrast, Part, Question, cells_of
from studies.row import Row
from tartan.files import escape_markdown as escape
from tartan.report.settings import metric_label, plural

BASELINE = "finetune"
"""The setting that others with the same budget are compared with."""


def document_of(parts: Mapping[str, Part], rows: Mapping[str, Sequence[Row]]) -> str:
    """Return the page as Markdown.

    Args:
        parts: the parts by name, in order.
        rows: the rows of each part.
    """
    statements = sum(len(part.questions) for part in parts.values())
    blocks = [_HEAD, *overview_of(parts, rows)]
    blocks.append(_READING.format(least=LEAST_SEEDS, statements=statements))
    for name, part in parts.items():
        blocks += [f"## {part.title}", part.about.strip(), _settings(part)]
        blocks.append(_progress(name, part, rows[name]))
        if rows[name]:
            blocks += _scores(rows[name])
        if any(row.tflop is not None for row in rows[name]):
            blocks.append(f"![Metric on test against the cost of training](results/{name}.svg)")
        if part.questions:
            blocks += _questions(part, rows[name])
    blocks += ["## Reproduction status", _status([row for own in rows.values() for row in own])]
    return "\n\n".join(block.strip() for block in blocks if block) + "\n"


_HEAD = """\
<!-- Written by `python -m studies write` from docs/results/*.csv and conf/study/*.yaml. -->

# Results

Does training the end task together with masked language modelling pay, against fine-tuning and
against pre-training first? This page is generated from the committed rows (`docs/results/`, a row a
run) by `python -m studies write`; `make study PART=NAME` trains what has no row yet."""

_READING = """\
## How to read this page

- **Budgets** are multiples of what fine-tuning takes, in floating-point operations of training as
  `result.json` counts them, heads, meta-gradient and padding included, evaluations on dev not. The
  steps of a setting follow from what a step cost in a trial; **TFLOP** is what its runs' training
  took, in 10^12 operations. In the main table fine-tuning has the least, up to 10 % less than the
  others; other settings are within some 15 % of it unless their description says otherwise.
- **dev**, **test** and TFLOP are means over seeds. Checkpoints are chosen on dev; test was looked
  at once a run. dev is the best of a run's evaluations, so it is optimistic, and more so where a
  setting has more evaluations.
- **±** is the standard deviation over seeds; **intervals** are Student's, 95 %, of a mean over
  seeds, given from {least} seeds on, except where all are equal: a few equal values do not show
  that others would be. Differences are taken between runs of the same seed. With 3 seeds an
  interval assumes normally distributed differences, which three cannot check; and where all seeds
  share a test split, the chance in the choice of that is not in it.
- **p** is from the paper's permutation test, here paired by seed, and one-sided: the hypothesis is
  "better", whatever the margin, so p is 1 where every seed is worse. Of 3 seeds it cannot be below
  0.125, of 5 not below 0.031: intervals decide, not p. (`src.report` pairs only where seeds draw
  the data.)
- **Statements** are decided on the value in brackets behind their answer. They hold where the
  interval of every contrast lies above the margin (0 unless given): all have to agree, which needs
  no correction for several contrasts. They do not hold as soon as the interval of one contrast lies
  at or below the margin, which is not corrected for their number. Else they are *not decided*;
  contrasts of fewer than {least} seeds, or without an interval, decide nothing. Nothing is
  corrected for the number of statements either, {statements} here: where methods do not differ, one
  in forty holds by chance. Answers are read after every run, and can change until a part is
  finished.
- **unseen** is test without the texts that are in train too; a part in which that equals test has
  no such column. **tfidf** is TF-IDF with logistic regression, its settings chosen on dev.
- **How they learned**: of the last stage with the end task, the mean training losses in the last
  tenth of its steps; medians over its steps of the norms of the tasks' gradients with respect to
  the body, before weighting, and of the end task's cosine with the meta-gradient; and the share of
  the steps after which dev was best. Rows written before these were kept do not count, so a mean
  may be of fewer seeds than the score.
- **Domain text** and the `_adapted` encoders come from two corpora that are not published with the
  paper: [what they are](study.md#the-corpora), and which public text takes their place."""


def _settings(part: Part) -> str:
    """Return a list of the settings that need words; empty if none does."""
    described = {name: own.about for name, own in part.settings.items() if own.about}
    return "\n".join(f"- `{name}` {' '.join(about.split())}" for name, about in described.items())


def _progress(name: str, part: Part, rows: Sequence[Row]) -> str:
    planned = {cell.key for cell in cells_of(name, part)}
    done = len(planned & {row.key for row in rows})
    rest = "" if done == len(planned) else f"; `make study PART={name}` trains the rest"
    return f"{done} of {plural(len(planned), 'run')} done{rest}."


def _scores(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the tables of each task and number of labels."""

    def bench(row: Row) -> tuple[str, int]:
        return row.task, row.labelled

    left_out = set() if any(row.unseen != row.test for row in rows) else {"unseen"}
    for (task, labelled), members in groupby(sorted(rows, key=bench), key=bench):
        own = list(members)
        metric = metric_label(own[0].metric)
        yield f"**{escape(task)}**, {labelled:,} labelled training examples, {metric} in percent"
        lines = [_score_row(*cell, own) for cell in _cells(own)]
        yield markdown_table(
            [{k: v for k, v in line.items() if k not in left_out} for line in lines], left=2
        )
        yield from _mixed(own)
        learned = [row for row in own if row.end_task_loss is not None]
        if learned:
            yield "How they learned:"
            yield markdown_table(
                [_learning_row(*cell, learned) for cell in _cells(learned)], left=2
            )


def _mixed(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line that names the cells whose rows were not all trained with the same options."""
    mixed = [
        f"`{budget}/{setting}`"
        for budget, setting in _cells(rows)
        if len({row.config for row in _of_cell(budget, setting, rows)}) > 1
    ]
    if mixed:
        yield (
            f"Not all seeds of {', '.join(mixed)} were trained with the same options (column "
            "`config` of the rows): their means mix these."
        )


def _cells(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return budgets and settings in the order of the rows, which is that of the part."""
    budgets = list(dict.fromkeys(row.budget for row in rows))
    cells = dict.fromkeys((row.budget, row.setting) for row in rows)
    return sorted(cells, key=lambda cell: budgets.index(cell[0]))


def _of_cell(budget: str, setting: str, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if (row.budget, row.setting) == (budget, setting)]


def _score_row(budget: str, setting: str, rows: Sequence[Row]) -> dict[str, str]:
    own = _of_cell(budget, setting, rows)
    against = Contrast(plus=[f"{budget}/{setting}"], minus=[f"{budget}/{BASELINE}"])
    gain = None if setting == BASELINE else contrast_of(against, rows, "test")
    return {
        "budget": budget,
        "setting": setting,
        "seeds": str(len(own)),
        "TFLOP": mean_of([row.tflop for row in own], ".1f"),
        "dev": mean_of([row.dev for row in own], ".1f", 100),
        "test": mean_words(SeedMean({row.seed: row.test for row in own})),
        "unseen": mean_of([row.unseen for row in own], ".1f", 100),
        "test, against fine-tuning": signed(gain),
    }


def _learning_row(budget: str, setting: str, rows: Sequence[Row]) -> dict[str, str]:
    own = _of_cell(budget, setting, rows)
    return {
        "budget": budget,
        "setting": setting,
        "end task's loss": mean_of([row.end_task_loss for row in own], ".3g"),
        "auxiliary tasks' loss": mean_of([row.auxiliary_loss for row in own], ".3g"),
        "end task's norm": mean_of([row.end_task_norm for row in own], ".2f"),
        "auxiliary norm": mean_of([row.auxiliary_norm for row in own], ".2f"),
        "cosine": mean_of([row.end_task_cosine for row in own], "+.3f"),
        "best on dev after [%]": mean_of([row.best_at for row in own], ".0f", 100),
    }


def _questions(part: Part, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table of the statements that have runs, and a line that names the others."""
    asked = part.questions.values()
    begun = [question for question in asked if has_runs(question, rows)]
    if begun:
        columns = list(dict.fromkeys(["dev", "test", *(question.of for question in begun)]))
        lines = [line for question in begun for line in _contrasts(question, rows, columns)]
        yield "### What the runs say"
        yield markdown_table(lines, left=3)
    rest = [question.statement for question in asked if question not in begun]
    if rest:
        yield f"No runs yet: {' '.join(rest)}"


def _contrasts(
    question: Question, rows: Sequence[Row], columns: Sequence[str]
) -> Iterator[dict[str, str]]:
    """Yield a line for each contrast; the first begins with the statement and its answer."""
    points = question.is_in_points
    margin = 100 * question.margin if points else question.margin
    above = f", margin {margin:+g}{' points' * points}" if margin else ""
    by = f"({question.of.replace('_', ' ')}{above})"
    told = {"statement": question.statement, "answer": f"{answer(question, rows)} {by}"}
    shown = {"dev", "test"} if points else {question.of}
    for label, contrast in question.contrasts.items():
        decides = contrast_of(contrast, rows, question.of)
        yield {
            **told,
            "contrast": label,
            "seeds": "0" if decides is None else str(len(decides.values)),
            **{
                of.replace("_", " "): signed(
                    contrast_of(contrast, rows, of) if of in shown else None, points
                )
                for of in columns
            },
        }
        told = dict.fromkeys(told, "")


def _status(rows: Sequence[Row]) -> str:
    roberta = [row for row in rows if "roberta" in row.encoder.lower()]
    if not roberta:
        return (
            "The paper's encoder, RoBERTa-base: not run (it takes a GPU and the Hugging Face Hub). "
            "The commands that would are those of "
            "[table 1](reproduce.md#table-1-and-6-the-tasks-own-text), with `scierc` in the place "
            "of `acl_arc`, then `python -m src.report runs`."
        )
    tasks = sorted({row.task for row in roberta})
    return (
        f"RoBERTa-base: {plural(len(roberta), 'run')} on {', '.join(tasks)}, in the tables above."
    )
