"""Prints the table at the end of a run: its scores, its cost, and its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tartan.errors import printable
from tartan.evaluation.monitor import PERPLEXITY, Monitor
from tartan.runs.folder import RESULT
from tartan.runs.result import Result, Scores, Stage

_SHOWN = 8
"""Maximum number of auxiliary tasks whose weights are listed: those with the largest weights."""
_TITLES = {"tf_idf": "TF-IDF", "fine_tuning": "fine-tuning"}
_FILES = {
    "result": RESULT,
    "weights over time": "task_weights.png",
    "weights by factor": "factor_weights.png",
    "split of each row": "splits.csv",
    "classifier": "classifier",
    "encoder": "encoder",
}


def print_summary(result: Result, folder: Path, console: Console | None = None) -> None:
    """Print the table at the end of a finished run, on standard output unless told otherwise."""
    console = console or Console()

    def show(line: str) -> None:  # names may come from files
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    show(f"{result.method} on {result.task}, {result.encoder}, seed {result.seed}")
    console.print(_scores(result), markup=False)
    show(f"{result.seconds:,.0f} s: {'; '.join(_length(s, result) for s in result.stages)}")
    if result.final_task_weights:
        show(f"task weights  {_weights(result.final_task_weights)}")
    for stage in result.stages:
        if stage.skipped:
            show(f"{stage.name}: {stage.skipped:,} updates were not finite, and skipped")
    near = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    for name, file in _FILES.items():
        if (folder / file).exists():
            show(f"{name:18}{near / file}")


def _scores(result: Result) -> Table:
    """Return the table of the metric that chose the checkpoint, of the run and its baselines."""
    metric, baselines = result.metric, result.baselines
    table = Table("split")
    for title in (metric, *(_TITLES.get(one.name, one.name) for one in baselines), "examples"):
        table.add_column(printable(title), justify="right")
    for split, evaluated in result.evaluated.items():
        parts = {"whole": split, "unseen": f"{split}, not in train"}
        if metric == PERPLEXITY:
            parts = {"whole": "held-out texts"}
        elif evaluated.unseen.examples == evaluated.whole.examples:
            del parts["unseen"]
        for part, title in parts.items():
            scores: Scores = getattr(evaluated, part)
            others = [getattr(one, split) if part == "whole" else None for one in baselines]
            cells = [_cell(metrics, metric) for metrics in (scores.metrics, *others)]
            table.add_row(title, *cells, f"{scores.examples:,}")
    return table


def _cell(metrics: Mapping[str, float] | None, name: str) -> str:
    return f"{metrics[name]:.4f}" if metrics and name in metrics else "-"


def _length(stage: Stage, result: Result) -> str:
    """Return how many steps a stage took, and after how many dev was best, if not at the end."""
    merit = Monitor(result.metric).merit
    best, _ = max(stage.evaluations, key=lambda one: merit(one[1]), default=(stage.steps, 0.0))
    words = f"{stage.name} {stage.steps:,} steps"
    return words if best == stage.steps else f"{words}, best after {best:,}"


def _weights(weights: Mapping[str, float]) -> str:
    first, *others = weights.items()
    if len(others) > _SHOWN:
        others = sorted(others, key=lambda pair: -pair[1])[:_SHOWN]
    more = f"  and {len(weights) - 1 - len(others)} more" if len(weights) > _SHOWN + 1 else ""
    return "  ".join(f"{name} {weight:.3f}" for name, weight in [first, *others]) + more
