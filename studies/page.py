"""Writes the pages of results and their figures from the rows, the parts, and two templates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from studies.estimate import (
    LEAST_SEEDS,
    SeedMean,
    answer,
    contrast_of,
    expected_best,
    has_runs,
    markdown_table,
    mean_of,
    published_score,
    signed,
)
from studies.part import BESIDE, NO_BUDGET, Contrast, Part, Question, cells_of
from studies.row import Row
from tartan.figures import figure, figure_text, legend_below, style
from tartan.files import escape_markdown
from tartan.report.comparison import metric_label
from tartan.report.tables import plural


def draw_costs(rows: Sequence[Row]) -> Figure:
    """Draw each setting's mean over seeds at each budget, with one standard deviation."""
    panels = list(dict.fromkeys((row.task, row.labelled) for row in rows))
    settings = dict.fromkeys(row.setting for row in rows)
    picture, all_axes = figure(2.2 + 4.4 * len(panels), 4.6, columns=len(panels))
    for axes, (task, labelled) in zip(all_axes, panels, strict=True):
        own = [row for row in rows if (row.task, row.labelled) == (task, labelled)]
        for index, setting in enumerate(settings):
            _draw_setting(axes, [row for row in own if row.setting == setting], style(index))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(LogFormatter(labelOnlyBase=False))
        axes.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))
        axes.set_xlabel("TFLOP of training")
        axes.set_title(figure_text(f"{task}, {labelled:,} labels"), loc="left", fontsize=10)
        axes.set_ylabel(f"test {metric_label(own[0].metric)} (%)")
    legend_below(picture, columns=4)
    return picture


def draw_differences(parts: Parts, rows: Rows) -> Figure:
    """Draw each main cell's difference from the part's first one on test, with its interval."""
    shown = [name for name, part in parts.items() if part.main and rows[name]]
    picture, (axes,) = figure(7.5, 1 + 0.9 * len(shown))
    for place, name in enumerate(shown):
        methods, own = with_choice(parts[name], rows[name])
        base, *others = (one for one in methods.items() if one[0] not in RIVALS)
        for index, (method, cell) in enumerate(others):
            gain = contrast_of(Contrast(plus=[cell], minus=[base[1]]), own, "test")
            if gain is None:
                continue
            low, high = gain.interval or (gain.mean, gain.mean)
            axes.errorbar(
                [100 * gain.mean],
                [-place - 0.2 * (index - 1.5)],
                xerr=[[100 * (gain.mean - low)], [100 * (high - gain.mean)]],
                **style(index + 1) | {"linestyle": "none"},
                capsize=3,
                label=method,
            )
    axes.axvline(0, color="0.4", linewidth=1)
    titles = [parts[name].title.split(":")[0] for name in shown]
    axes.set_yticks([-place for place in range(len(shown))], titles)
    axes.set_xlabel("points on test against fine-tuning")
    legend_below(picture, columns=2)
    return picture


def with_choice(part: Part, rows: Sequence[Row]) -> tuple[dict[str, str], list[Row]]:
    """Return the main table's cells by method, and the rows with each seed's best on dev."""
    cells = list(part.main.values())
    own = [row for cell in cells for row in rows if row.cell == cell]
    counts = Counter(row.seed for row in own)
    whole = [seed for seed, count in counts.items() if count == len(cells)]
    best = [max((r for r in own if r.seed == seed), key=lambda row: row.dev) for seed in whole]
    chosen = [row.model_copy(update={"setting": BEST, "method": BEST}) for row in best]
    rivals = {name: f"{NO_BUDGET}/{setting}" for name, setting in RIVALS.items()} if own else {}
    return part.main | {row.method: row.cell for row in chosen} | rivals, [*rows, *chosen]


def means_of_few(parts: Parts, rows: Rows) -> dict[str, float]:
    """Return the mean over the tasks with few labels, of each method that all of them have."""
    tables = []
    for name, part in parts.items():
        methods, own = with_choice(part, rows[name])
        tests = {m: [row.test for row in own if row.cell == cell] for m, cell in methods.items()}
        if methods and own[0].labelled <= FEW:
            tables.append({method: 100 * fmean(found) for method, found in tests.items() if found})
    means = pd.DataFrame(tables).mean(skipna=False).dropna()
    return {str(method): float(mean) for method, mean in means.items()}


def main_rows(parts: Parts, rows: Rows) -> list[Row]:
    """Return the rows of the main cells' settings, of parts that have them at several budgets."""
    chosen = []
    for name, part in parts.items():
        methods = {cell.partition("/")[2]: method for method, cell in part.main.items()}
        own = [row for row in rows[name] if row.setting in methods]
        if len({row.budget for row in own}) > 1:
            chosen += [row.model_copy(update={"setting": methods[row.setting]}) for row in own]
    return chosen


def _draw_setting(axes: Axes, rows: Sequence[Row], drawn: dict[str, Any]) -> None:
    """Draw the budgets of a setting from the cheapest on, whose means a line joins."""
    if not rows:
        return
    budgets = pd.DataFrame([row.model_dump() for row in rows]).groupby("budget")
    of = budgets.agg(cost=("tflop", "mean"), mean=("test", "mean"), spread=("test", "std"))
    of = of.sort_values("cost").fillna({"spread": 0.0})
    label = figure_text(rows[0].setting)
    axes.errorbar(of["cost"], 100 * of["mean"], 100 * of["spread"], **drawn, capsize=3, label=label)


BEST = "best on dev"
"""The main method with the best dev score of a seed."""
FEW = 300
"""Up to so many labels are few."""
RIVALS = dict(zip(("TF-IDF", "Trainer's defaults", "SetFit", "the race"), BESIDE, strict=True))
"""Rivals without a budget, by their names in the main table."""
BASELINE = "finetune"
"""The setting that others with the same budget are compared with."""
Parts = Mapping[str, Part]
Rows = Mapping[str, Sequence[Row]]


def pages_of(parts: Parts, rows: Rows) -> tuple[str, str]:
    """Return the page and its appendix as Markdown, from the parts by name and their rows."""
    scores = [line for name, part in parts.items() for line in _main_lines(part, rows[name])]
    asked = [(q, rows[name]) for name, part in parts.items() for q in part.questions.values()]
    counts = Counter(answer(question, own) for question, own in asked)
    roberta = [r for own in rows.values() for r in own if "roberta" in r.encoder.lower()]
    tasks = ", ".join(sorted({row.task for row in roberta}))
    context = {
        "scores": markdown_table(scores, left=3) if scores else "",
        "meta": "; ".join(_meta_against_mt(parts, rows)),
        "means": ", ".join(f"{m} {mean:.1f}" for m, mean in means_of_few(parts, rows).items()),
        "least": LEAST_SEEDS,
        "total": len(asked),
        "holds": counts["holds"],
        "refuted": counts["does not hold"],
        "open": counts["not decided"],
        "empty": sum(not has_runs(question, own) for question, own in asked),
        "answers": "\n".join(_answers(parts, rows)),
        "parts": [_part(name, part, rows[name]) for name, part in parts.items()],
        "roberta": f"{plural(len(roberta), 'run')} on {tasks}" if roberta else "",
    }
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page, appendix = (
        environment.get_template(name).render(context).strip() + "\n"
        for name in ("page.md", "page_all.md")
    )
    return page, appendix


def _meta_against_mt(parts: Parts, rows: Rows) -> Iterator[str]:
    """Yield META-TARTAN's difference from MT-TARTAN on test for each part that has both."""
    for name, part in parts.items():
        if {"MT-TARTAN", "META-TARTAN"} <= part.main.keys():
            contrast = Contrast(plus=[part.main["META-TARTAN"]], minus=[part.main["MT-TARTAN"]])
            found = contrast_of(contrast, rows[name], "test")
            yield f"{part.title.split(':')[0]}, {signed(found)}"


def _main_lines(part: Part, rows: Sequence[Row]) -> Iterator[dict[str, str]]:
    """Yield a line of the main table for each of the part's main cells that has rows."""
    base = next(iter(part.main.values()), "")
    methods, rows = with_choice(part, rows)
    for method, cell in methods.items():
        own = [row for row in rows if row.cell == cell]
        if not own:
            continue
        first, test, is_first = own[0], SeedMean({row.seed: row.test for row in own}), cell == base
        against = Contrast(plus=[cell], minus=[base])
        gain = None if is_first else contrast_of(against, rows, "test")
        yield {
            "task, metric": f"{first.task}, {metric_label(first.metric)}" if is_first else "",
            "labels": f"{first.labelled:,}" if is_first else "",
            "method": method,
            "seeds": str(len(own)),
            "test": test.words,
            "against fine-tuning": signed(gain),
            "the paper": published_score(first.task, first.labelled, first.method),
        }


def _answers(parts: Parts, rows: Rows) -> Iterator[str]:
    """Yield a list of the paper's statements ("Claim ..."), and of others that are decided."""
    claims: dict[str, list[str]] = defaultdict(list)
    others: dict[str, list[str]] = defaultdict(list)
    for name, part in parts.items():
        title, own = part.title.split(":")[0], rows[name]
        for question in part.questions.values():
            verdict = answer(question, own)
            if question.statement.startswith("Claim "):
                contrasts = {
                    label: contrast_of(contrast, own, question.of)
                    for label, contrast in question.contrasts.items()
                }
                told = "; ".join(
                    f"{label} {signed(found, question.is_in_points)}, p {found.p}"
                    for label, found in contrasts.items()
                    if found is not None
                )
                shown = f"**{verdict.capitalize()}** for {title}: {told}."
                claims[question.statement] += [shown if told else f"No runs yet for {title}."]
            elif verdict != "not decided":
                head = f"**{verdict.capitalize()}** for {title}:"
                others[head].append(f"\n  - {question.statement}")
    yield from (f"- {statement} {' '.join(found)}" for statement, found in claims.items())
    yield from (f"- {head}{''.join(found)}" for head, found in others.items())


def _part(name: str, part: Part, rows: Sequence[Row]) -> dict[str, object]:
    """Return what the template shows of a part."""
    planned = {cell.key for cell in cells_of(name, part)}
    done = len(planned & {row.key for row in rows})
    rest = "" if done == len(planned) else f"; `make study PART={name}` trains the rest"
    about = {key: " ".join(own.about.split()) for key, own in part.settings.items() if own.about}
    if part.trials and rows:
        lines = [_trials_line(part, members) for members in _cells(rows).values()]
        blocks = [markdown_table(lines, left=1)]
    else:
        blocks = [*_scores(rows), *_questions(part, rows)]
    return {
        "title": part.title,
        "summary": part.summary.strip(),
        "about": part.about.strip(),
        "settings": "\n".join(f"- `{setting}` {words}" for setting, words in about.items()),
        "progress": f"{done} of {plural(len(planned), 'run')} done{rest}.",
        "blocks": blocks,
    }


def _scores(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the tables of each task and number of labels."""

    def bench(row: Row) -> tuple[str, int]:
        return row.task, row.labelled

    left_out = set() if any(row.unseen != row.test for row in rows) else {"unseen"}
    for (task, labelled), members in groupby(sorted(rows, key=bench), key=bench):
        own = list(members)
        cells = _cells(own)
        metric = metric_label(own[0].metric)
        task = escape_markdown(task)
        yield f"**{task}**, {labelled:,} labelled training examples, {metric} in percent"
        lines = [_score_line(members, own) for members in cells.values()]
        shown = [{k: v for k, v in line.items() if k not in left_out} for line in lines]
        yield markdown_table(shown, left=2)
        mixed = [f"`{c}`" for c, members in cells.items() if len({r.config for r in members}) > 1]
        if mixed:
            yield (
                f"Not all seeds of {', '.join(mixed)} were trained with the same options (column "
                "`config` of the rows): their means mix these."
            )
        learned = _cells([row for row in own if row.end_task_loss is not None])
        if learned:
            yield "How they learned:"
            yield markdown_table([_learning_line(members) for members in learned.values()], left=2)


def _cells(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return rows by cell, by budgets and settings in the order of the rows."""
    budgets = list(dict.fromkeys(row.budget for row in rows))
    cells: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: budgets.index(row.budget)):
        cells[row.cell].append(row)
    return cells


def _score_line(own: Sequence[Row], rows: Sequence[Row]) -> dict[str, str]:
    budget, setting = own[0].budget, own[0].setting
    against = Contrast(plus=[own[0].cell], minus=[f"{budget}/{BASELINE}"])
    gain = None if setting == BASELINE else contrast_of(against, rows, "test")
    return {
        "budget": budget,
        "setting": setting,
        "seeds": str(len(own)),
        "TFLOP": mean_of([row.tflop for row in own], ".1f"),
        "dev": mean_of([row.dev for row in own], ".1f", 100),
        "test": SeedMean({row.seed: row.test for row in own}).words,
        "unseen": mean_of([row.unseen for row in own], ".1f", 100),
        "test, against fine-tuning": signed(gain),
    }


def _learning_line(own: Sequence[Row]) -> dict[str, str]:
    return {
        "budget": own[0].budget,
        "setting": own[0].setting,
        "end task's loss": mean_of([row.end_task_loss for row in own], ".3g"),
        "auxiliary tasks' loss": mean_of([row.auxiliary_loss for row in own], ".3g"),
        "end task's norm": mean_of([row.end_task_norm for row in own], ".2f"),
        "auxiliary norm": mean_of([row.auxiliary_norm for row in own], ".2f"),
        "cosine": mean_of([row.end_task_cosine for row in own], "+.3f"),
        "best on dev after [%]": mean_of([row.best_at for row in own], ".0f", 100),
    }


def _trials_line(part: Part, own: Sequence[Row]) -> dict[str, str]:
    """Return what the trials of a setting gave on dev, and the best one's draws."""
    dev, options = [row.dev for row in own], part.settings[own[0].setting].options + part.options
    best = max(own, key=lambda row: row.dev).seed
    drawn = [n for n in part.trials if any(option.endswith(f"=${n}") for option in options)]
    expected = {n: [expected_best(dev, n)] if n <= len(dev) else [] for n in (2, 4, 8)}
    return {
        "setting": own[0].setting,
        "trials": str(len(own)),
        "worst": f"{100 * min(dev):.1f}",
        "mean": f"{100 * fmean(dev):.1f}",
        **{f"best of {n}, expected": mean_of(v, ".1f", 100) for n, v in expected.items()},
        "best": f"{100 * max(dev):.1f}",
        "drawn there": ", ".join(f"{name} {part.trials[name][best]}" for name in drawn),
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
        line = told | {"contrast": label}
        line["seeds"] = "0" if decides is None else str(len(decides.values))
        for of in columns:
            found = contrast_of(contrast, rows, of) if of in shown else None
            line[of.replace("_", " ")] = signed(found, points)
        yield line
        told = dict.fromkeys(told, "")
