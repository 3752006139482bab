"""Prints the table at the end of a run: its scores, its cost, and its folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tartan.errors import printable
from tartan.evaluation.monitor import PERPLEXITY, Monitor
from tartan.files import map_texts
from tartan.runs.command_line import program
from tartan.runs.name import RESULT
from tartan.runs.result import Result, Scores, Stage

_SHOWN = 8
"""Maximum number of auxiliary tasks whose weights are listed: those with the largest weights."""
_TITLES = {"tf_idf": "TF-IDF", "fine_tuning": "fine-tuning"}
"""Headings of baselines."""
_FILES = {
    "result": RESULT,
    "weights over time": "task_weights.png",
    "weights by factor": "factor_weights.png",
    "split of each row": "splits.csv",
    "classifier": "classifier",
    "encoder": "encoder",
}


def print_summary(
    result: Result, folder: Path, console: Console | None = None, verbose: bool = False
) -> None:
    """Print the table at the end of a finished run.

    Args:
        result: the run's result.
        folder: the run folder; shown relative to the working folder where it is in that.
        console: where to print; None for standard output.
        verbose: whether to print all metrics, and the cost of each stage and task.
    """
    # anybody may have written the folder: what it names is text, not markup or control characters
    show = partial((console or Console()).print, markup=False, highlight=False, soft_wrap=True)
    result = Result.model_validate(map_texts(result.as_json(), printable), strict=False)
    show(f"{result.method} on {result.task}, {result.encoder}, seed {result.seed}", style="bold")
    show(_scores(result, verbose), soft_wrap=False)
    if verbose:
        show("* chooses the checkpoint", style="dim")
        show(_costs(result), soft_wrap=False)
    else:
        show(f"{result.seconds:,.0f} s: {'; '.join(_length(s, result) for s in result.stages)}")
    if result.final_task_weights:
        show(_weights(result.final_task_weights))
    warnings = [
        f"{stage.name}: {stage.skipped:,} of {stage.steps:,} updates were skipped, because a "
        "number was not finite"
        for stage in result.stages
        if stage.skipped
    ]
    for warning in (*warnings, one_label_remark(result)):
        if warning is not None:
            show(warning, style="yellow")
    here = Path.cwd()
    near = folder.relative_to(here) if folder.is_relative_to(here) else folder
    for name, file in _FILES.items():
        if (folder / file).exists():
            show(f"{name:18}{near / file}")


def _length(stage: Stage, result: Result) -> str:
    """Return how many steps a stage took, and after how many dev was best, if not at the end."""
    merit = Monitor(result.metric).merit
    best, _ = max(stage.evaluations, key=lambda one: merit(one[1]), default=(stage.steps, 0.0))
    words = f"{stage.name} {stage.steps:,} steps"
    return words if best == stage.steps else f"{words}, best after {best:,}"


def _scores(result: Result, verbose: bool) -> Table:
    """Return the table of metrics: all of them, or the one that chose the checkpoint."""
    metric, baselines = result.metric, result.baselines
    others = [name for name in result.dev.whole.metrics or {} if name not in (metric, "loss")]
    names = [metric, *(others if verbose else [])]
    titles = [f"{name} *" if verbose and name == metric else name for name in names]
    titles += [_TITLES.get(baseline.name, baseline.name) for baseline in baselines]
    table = Table("split")
    for title in (*titles, "examples"):
        table.add_column(title, justify="right")
    for split, evaluated in result.evaluated.items():
        parts = {"whole": split, "unseen": f"{split}, not in train"}
        if metric == PERPLEXITY:
            parts = {"whole": "held-out texts"}
        elif evaluated.unseen.examples == evaluated.whole.examples and not verbose:
            del parts["unseen"]
        for part, title in parts.items():
            scores: Scores = getattr(evaluated, part)
            cells = [_cell(scores.metrics, name) for name in names]
            for baseline in baselines:
                reached = getattr(baseline, split) if part == "whole" else None
                cells.append(_cell(reached, metric))
            table.add_row(title, *cells, f"{scores.examples:,}")
    return table


def _cell(metrics: Mapping[str, float] | None, name: str) -> str:
    return f"{metrics[name]:.4f}" if metrics and name in metrics else "-"


def _weights(weights: Mapping[str, float]) -> str:
    """Return a line of the final task weights."""
    first, *others = weights.items()
    others = sorted(others, key=lambda pair: -pair[1]) if len(others) > _SHOWN else others
    shown = "  ".join(f"{k} {v:.3f}" for k, v in [first, *others[:_SHOWN]])
    more = f"  and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f"task weights  {shown}{more}"


def _costs(result: Result) -> Table:
    """Return a table of the cost of each stage, and of each task in it."""
    table = Table("stage", show_edge=False, box=None, padding=(0, 2, 0, 0))
    unit = "tokens" if result.is_text else "examples"
    for title in ("steps", "seconds", unit, "GFLOP", "tok/s", "padding", "GiB"):
        table.add_column(title, justify="right")
    for stage in result.stages:
        measured, flops = stage.measured, stage.cost.flops or {}
        amounts = stage.cost.tokens if result.is_text else stage.cost.examples
        peak = measured.peak_memory_bytes
        table.add_row(
            stage.name,
            f"{stage.steps:,}",
            f"{measured.seconds:.0f}",
            f"{sum(amounts.values()):,}",
            f"{sum(flops.values()) / 1e9:,.0f}",
            _or_dash(measured.tokens_per_second, ",.0f"),
            _or_dash(stage.cost.padding_share, ".0%"),
            _or_dash(peak and peak / 2**30, ".1f"),
        )
        for name, count in amounts.items() if len(amounts) > 1 else ():
            table.add_row(f"  {name}", "", "", f"{count:,}", f"{flops.get(name, 0) / 1e9:,.0f}")
    return table


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def one_label_remark(result: Result) -> str | None:
    """Return a sentence if all predictions on test are one label, and test has others too."""
    counts = result.test.whole.confusion if result.is_tested else None
    if counts is None or sum(map(any, counts)) < 2:
        return None
    predicted = zip(result.labels, zip(*counts, strict=True), strict=True)
    labels = [label for label, column in predicted if any(column)]
    if len(labels) != 1:
        return None
    return (
        f"every example of test got the label {labels[0]!r}. If more steps do not help, "
        f"{' '.join(program('check'))} looks for other causes"
    )
