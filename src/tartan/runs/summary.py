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
    show = partial((console or Console()).print, markup=False, highlight=False)
    result = Result.model_validate(map_texts(result.as_json(), printable), strict=False)
    title = f"{result.method} on {result.task}, {result.encoder}, seed {result.seed}"
    show(title, style="bold", soft_wrap=True)
    show(_scores(result, verbose))
    if verbose:
        show(_stages(result))
    else:
        steps = "; ".join(_length(stage, result.metric) for stage in result.stages)
        show(f"{_seconds(result.seconds)}: {steps}")
        for baseline in result.baselines:
            if baseline.seconds is not None:
                title = _TITLES.get(baseline.name, baseline.name)
                spent = f"{_seconds(baseline.seconds)}: {title} at equal cost, "
                show(f"{spent}{baseline.settings}")
    if result.final_task_weights:
        show(_weights(result.final_task_weights), highlight=True)
    if verbose:
        show("* chooses the checkpoint", style="dim")
        show("GiB: peak memory", style="dim")
    for stage in result.stages:
        if stage.skipped:
            show(
                f"{stage.name}: {stage.skipped:,} of {stage.steps:,} updates were skipped, because "
                "a number was not finite",
                style="yellow",
            )
    for remark in (one_label_remark(result), behind_tf_idf_remark(result)):
        if remark is not None:
            show(remark, style="yellow", soft_wrap=True)
    here = Path.cwd()
    near = folder.relative_to(here) if folder.is_relative_to(here) else folder
    for what, name in (
        ("result", RESULT),
        ("weights over time", "task_weights.png"),
        ("weights by factor", "factor_weights.png"),
        ("split of each row", "splits.csv"),
        ("classifier", "classifier"),
        ("encoder", "encoder"),
    ):
        if (folder / name).exists():
            # a path must not be wrapped, so that it can be copied
            show(f"{what:18}{near / name}", soft_wrap=True)


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} second{'' if round(seconds) == 1 else 's'}"


def _length(stage: Stage, metric: str) -> str:
    """Return how many steps a stage took, and after how many dev was best, if not at the end."""
    words = f"{stage.name} {stage.steps:,} steps"
    merit = Monitor(metric).merit
    best = max(stage.evaluations, key=lambda one: merit(one[1]), default=(stage.steps, 0.0))
    return words if best[0] == stage.steps else f"{words}, best after {best[0]:,}"


def _scores(result: Result, verbose: bool) -> Table:
    """Return the table of metrics: all of them, or the one that chose the checkpoint."""
    metric, baselines = result.metric, result.baselines
    table = Table()
    known = [name for name in result.dev.whole.metrics or {} if name not in (metric, "loss")]
    names = [metric, *known] if verbose else [metric]
    table.add_column("split")
    for name in names:
        table.add_column(f"{name} *" if verbose and name == metric else name, justify="right")
    for baseline in baselines:
        table.add_column(_TITLES.get(baseline.name, baseline.name), justify="right")
    table.add_column("examples", justify="right")
    for split, found in result.evaluated.items():
        parts = [("whole", split), ("unseen", f"{split}, not in train")]
        if found.unseen.examples == found.whole.examples and not verbose:
            parts = parts[:1]
        for part, label in [("unseen", "held-out texts")] if metric == PERPLEXITY else parts:
            scores: Scores = getattr(found, part)
            cells = [_cell(scores.metrics, name) for name in names]
            for baseline in baselines:
                reached: dict[str, float] | None = getattr(baseline, split)
                cells.append(_cell(reached if part == "whole" else None, metric))
            table.add_row(label, *cells, f"{scores.examples:,}")
    return table


def _weights(weights: Mapping[str, float]) -> str:
    """Return a line of the final task weights."""
    first, *others = weights.items()
    others = sorted(others, key=lambda pair: -pair[1]) if len(others) > _SHOWN else others
    shown = "  ".join(f"{k} {v:.3f}" for k, v in [first, *others[:_SHOWN]])
    more = f"  and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f"task weights  {shown}{more}"


def _cell(metrics: Mapping[str, float] | None, name: str) -> str:
    return f"{metrics[name]:.4f}" if metrics and name in metrics else "-"


def _stages(result: Result) -> Table:
    """Return a table of the cost of each stage, and of each task in it."""
    table = Table(show_edge=False, box=None, padding=(0, 2, 0, 0))
    text = result.is_text
    tasks = [name for stage in result.stages for name in _amounts(stage, text)]
    # names of tasks are not cut
    table.add_column("stage", style="dim", min_width=2 + max(map(len, tasks), default=0))
    headings = ["steps", "seconds", "tokens" if text else "examples", "GFLOP"]
    for name in (*headings, *(("tok/s", "padding") if text else ()), "GiB"):
        table.add_column(name, justify="right", style="dim")
    for stage in result.stages:
        measured, amounts, flops = stage.measured, _amounts(stage, text), stage.cost.flops or {}
        speed = _or_dash(measured.tokens_per_second, ",.0f")
        peak = measured.peak_memory_bytes
        table.add_row(
            stage.name,
            f"{stage.steps:,}",
            f"{measured.seconds:.0f}",
            f"{sum(amounts.values()):,}",
            _giga(sum(flops.values())),
            *((speed, _or_dash(stage.cost.padding_share, ".0%")) if text else ()),
            _or_dash(peak and peak / 2**30, ".1f"),
        )
        if len(amounts) > 1:
            for name, count in amounts.items():
                table.add_row(f"  {name}", "", "", f"{count:,}", _giga(flops.get(name, 0)))
    return table


def _amounts(stage: Stage, text: bool) -> dict[str, int]:
    return stage.cost.tokens if text else stage.cost.examples


def _giga(flops: float) -> str:
    return f"{flops / 1e9:,.0f}"


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def one_label_remark(result: Result) -> str | None:
    """Return a sentence if all predictions on test are the same label.

    None if they are not, if that was not counted, as on dev, or if test has no other label.
    """
    counts = result.test.whole.confusion if result.is_tested else None
    if counts is None or sum(map(any, counts)) < 2:
        return None
    predicted = zip(result.labels, zip(*counts, strict=True), strict=True)
    given = [label for label, column in predicted if any(column)]
    if len(given) != 1:
        return None
    kind = "text" if result.is_text else "example"
    return (
        f"every {kind} of test got the label {given[0]!r}. If more steps do not help, "
        f"{' '.join(program('check'))} looks for other causes"
    )


def behind_tf_idf_remark(result: Result) -> str | None:
    """Return a sentence if TF-IDF is clearly ahead on test, or on dev of a run without test.

    None if it is not, or was not computed.
    """
    split = "test" if result.is_tested else "dev"
    own = (result.evaluated[split].whole.metrics or {}).get(result.metric)
    scores = [getattr(one, split) or {} for one in result.baselines if one.name == "tf_idf"]
    if own is None or not scores or result.metric not in scores[0]:
        return None
    lead = 100 * (scores[0][result.metric] - own)
    if lead < 2.0:
        return None
    ahead = f"{lead:.1f} points of {result.metric} ahead on {split}"
    return f"TF-IDF with logistic regression is {ahead}. More steps or another rate may help"
