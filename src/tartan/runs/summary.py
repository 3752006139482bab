"""Prints the table at the end of a run: its scores, its cost, and its folder."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from tartan.core.task_names import END_TASK
from tartan.errors import printable
from tartan.evaluation.stage_result import PERPLEXITY
from tartan.runs.folder import RESULT
from tartan.runs.result import Result

_SHOWN = 8
"""Maximum number of auxiliary tasks whose weights are listed: those with the largest weights."""
_TITLES = {"tf_idf": "TF-IDF", "fine_tuning": "fine-tuning"}
_FILES = {
    "result": RESULT,
    "weights over time": "task_weights.png",
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
    steps = ", ".join(f"{stage.name} {stage.steps:,} steps" for stage in result.stages)
    best = result.chosen or {"step": "?", "stage": "?"}
    show(f"{result.seconds:,.0f} s: {steps}; best after step {best['step']} of {best['stage']}")
    if weights := result.final_task_weights:
        largest = sorted(weights, key=lambda name: (name != END_TASK, -weights[name]))[: _SHOWN + 1]
        more = f"  and {len(weights) - len(largest)} more" if len(weights) > len(largest) else ""
        listed = "  ".join(f"{name} {weights[name]:.3f}" for name in largest)
        show(f"task weights  {listed}{more}")
    for stage in result.stages:
        if stage.skipped:
            show(f"{stage.name}: {stage.skipped:,} updates were not finite, and skipped")
    near = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    for name, file in _FILES.items():
        if (folder / file).exists():
            show(f"{name:18}{near / file}")


def _scores(result: Result) -> Table:
    """Return the table of the metric that chose the checkpoint, of the run and its baselines."""
    metric, table = result.metric, Table("split")
    names = (_TITLES.get(baseline.name, baseline.name) for baseline in result.baselines)
    for title in (metric, *names, "examples"):
        table.add_column(printable(title), justify="right")
    for split, evaluated in result.evaluated.items():
        others = [getattr(baseline, split) for baseline in result.baselines]
        whole, unseen = evaluated.whole, evaluated.unseen
        title = split if unseen.examples else f"{split}, trained on"
        rows = {"held-out texts" if metric == PERPLEXITY else title: (whole, others)}
        if 0 < unseen.examples < whole.examples:
            rows[f"{split}, not in train"] = (unseen, [None] * len(others))
        for title, (scores, beside) in rows.items():
            values = [(metrics or {}).get(metric) for metrics in (scores.metrics, *beside)]
            cells = ["-" if value is None else f"{value:.4f}" for value in values]
            table.add_row(title, *cells, f"{scores.examples:,}")
    return table
