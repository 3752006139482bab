"""The figures of README and of the pages are those of the committed rows of the study.

A number in prose is followed by a comment that names its cells, which no reader sees:
`11.7<!--suspects 3x/tapt - 3x/finetune-->` is a mean difference on test in points, with one cell a
mean, or the score of a single seed (`3x/tapt@0`), and after `weight` the end task's mean weight.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pandas as pd
import pytest

from studies.estimate import LEAST_SEEDS, contrast_of
from studies.page import BEST, means_of_few
from studies.part import NO_BUDGET, RACE, SETFIT, TRAINER, Contrast, all_parts, read_part
from studies.row import Row, read_rows
from tartan.report.comparison import metric_label
from tests.conftest import ROOT

NAMES = {
    "scierc": "SciERC",
    "chemprot": "ChemProt",
    "acl_arc": "ACL-ARC",
    "hyperpartisan": "HyperPartisan",
}
"""Names of tasks in prose."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CELL = r"((?:no )?\S+)"
MARKED = re.compile(rf"([\d.]+)<!--(weight )?(\w+) {CELL}(?: - {CELL})?-->")


def rows_of(part: str, cell: str) -> list[Row]:
    """Return the rows of a cell, of at least three seeds, or that of the seed which is named."""
    name, _, seed = cell.partition("@")
    rows = read_rows(ROOT / "docs" / "results" / f"{part}.csv")
    rows = [row for row in rows if f"{row.budget}/{row.setting}" == name]
    if seed:
        return [row for row in rows if row.seed == int(seed)]
    assert len(rows) >= LEAST_SEEDS, cell
    return rows


def difference(part: str, plus: str, minus: str) -> float:
    rows = rows_of(part, plus) + rows_of(part, minus)
    named = Contrast(plus=[plus.partition("@")[0]], minus=[minus.partition("@")[0]])
    gain = contrast_of(named, rows, "test")
    assert gain is not None
    return 100 * gain.mean


def marked() -> list[tuple[Path, re.Match[str]]]:
    return [(page, found) for page in PAGES for found in MARKED.finditer(page.read_text("utf-8"))]


@pytest.mark.parametrize(
    ("page", "found"), marked(), ids=lambda one: one.stem if isinstance(one, Path) else one[0][:60]
)
def test_a_marked_number_is_that_of_the_rows(page, found):
    number, weight, part, cell, base = found.groups()
    if weight:
        value = f"{mean(row.end_task_weight for row in rows_of(part, cell)):.2f}"
    elif base:
        value = f"{difference(part, cell, base):.1f}"
    else:
        value = f"{100 * mean(row.test for row in rows_of(part, cell)):.1f}"
    assert number == value


def test_numbers_are_marked():
    assert {page.stem for page, _ in marked()} >= {"README", "results", "algorithm"}


def score_of(rows: list[Row], cell: str, base: str) -> str:
    """Return a score as README has it, bold or with an arrow where decided; a dash for no rows."""
    if not any(row.cell == cell for row in rows):
        return "–"
    gain = contrast_of(Contrast(plus=[cell], minus=[base]), rows, "test")
    verdict = "not decided" if cell == base or gain is None else gain.verdict(0)
    forms = {"holds": "**{}**", "does not hold": "{} ↓"}
    score = f"{100 * mean(row.test for row in rows if row.cell == cell):.1f}"
    return forms.get(verdict, "{}").format(score)


@pytest.mark.parametrize("part", [name for name, part in all_parts().items() if part.main])
def test_the_table_of_readme_is_that_of_the_rows(part):
    cells = list(read_part(part).main.values())
    trainer, setfit, race = (f"{NO_BUDGET}/{rival}" for rival in (TRAINER, SETFIT, RACE))
    known = (trainer, f"{setfit}@0", f"{race}@0", *cells)
    rows = [row for cell in known for row in rows_of(part, cell)]
    for seed in {row.seed for row in rows}:
        tried = [row for cell in cells for row in rows if (row.cell, row.seed) == (cell, seed)]
        best = max(tried, key=lambda row: row.dev)
        rows.append(best.model_copy(update={"setting": BEST}))
    columns = [trainer, setfit, *cells, rows[-1].cell]
    line = [
        f"{NAMES.get(rows[0].task, rows[0].task)}, {metric_label(rows[0].metric)}",
        f"{rows[0].labelled:,}",
        *(score_of(rows, cell, base=cell) for cell in columns[:2]),
        *(score_of(rows, cell, base=cells[0]) for cell in columns[2:]),
        score_of(rows, race, base=race),
    ]
    assert f"| {' | '.join(line)} |" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_means_over_tasks_of_readme_are_those_of_the_rows():
    parts = all_parts()
    rows = {name: read_rows(ROOT / "docs" / "results" / f"{name}.csv") for name in parts}
    means = means_of_few(parts, rows)
    main = list(parts["suspects"].main)
    names = ("Trainer's defaults", "SetFit", *main, BEST, "the race")
    shown = " | ".join(f"{means[name]:.1f}" for name in names)
    assert f"| mean of these | few | {shown} |" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("part", [name for name, part in all_parts().items() if part.main])
def test_no_method_costs_over_ten_percent_more_than_fine_tuning(part):
    base, *others = (
        mean(row.tflop for row in rows_of(part, cell)) for cell in read_part(part).main.values()
    )
    assert all(1 < round(cost / base, 2) <= 1.10 for cost in others)


def test_wrong_labels_were_found_and_texts_suggested_as_the_page_says():
    rows = pd.read_csv(ROOT / "docs" / "results" / "label_quality.csv").groupby("task")
    found = (100 * rows["found"].mean()).round().astype(int)
    words = f"{found['scierc']} % of them on SciERC and {found['acl_arc']} % on ACL-ARC"
    assert words in (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    gains = rows.apply(lambda own: own["suggested"] - own["random"], include_groups=False)
    assert all(abs(own.mean()) < 2 * own.sem() for _, own in gains.groupby("task"))
