"""The closing table: what a run reached, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from src.errors import printable
from src.evaluation.monitor import PERPLEXITY

_SHOWN = 8
"""Auxiliary tasks whose weights are listed, where there are more the weightiest."""


def print_summary(result: Mapping[str, Any], folder: Path, console: Console | None = None) -> None:
    """Print the table of a finished run from its `result.json`."""
    console = console or Console()
    result = _printable(result)
    metric = result["metric"]
    table = Table(
        title=escape(
            f"{result['method']} on {result['task']}, {result['encoder']}, seed {result['seed']}"
        ),
        title_justify="left",
        title_style="bold",
    )
    table.add_column("split")
    for name in _metric_names(result):
        table.add_column(f"{name} *" if name == metric else name, justify="right")
    table.add_column("examples", justify="right")
    for split in [name for name in ("dev", "test") if name in result]:
        parts = [("whole", split), ("unseen", f"{split}, not in train")]
        for part, label in [("unseen", "held-out texts")] if metric == PERPLEXITY else parts:
            scores = result[split][part]
            cells = [_cell(scores["metrics"], name) for name in _metric_names(result)]
            table.add_row(label, *cells, f"{scores['examples']:,}")
    console.print(table)
    console.print(_stages(result))
    weights = result["final_task_weights"]
    if weights:
        first, *others = weights.items()
        others = sorted(others, key=lambda pair: -pair[1]) if len(others) > _SHOWN else others
        shown = "  ".join(f"{k} {v:.3f}" for k, v in [first, *others[:_SHOWN]])
        more = f"  and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        console.print(f"task weights  {shown}{more}")
    console.print("[dim]* chooses the checkpoint[/dim]")
    console.print("[dim]GiB: peak memory; † share of the time in passes and updates[/dim]")
    for what, name in (
        ("result", "result.json"),
        ("weights over time", "task_weights.png"),
        ("weights by factor", "factor_weights.png"),
        ("rows of a split", "splits.csv"),
        ("classifier", "classifier"),
        ("encoder", "encoder"),
    ):
        if (folder / name).exists():
            # plain print: a path must not be wrapped, so that it can be copied
            console.print(
                f"{what:18}{folder / name}", soft_wrap=True, highlight=False, markup=False
            )


def _printable(value: Any) -> Any:
    """The same with nothing in it that commands the terminal: the folder may be anybody's."""
    if isinstance(value, Mapping):
        return {_printable(key): _printable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_printable(entry) for entry in value]
    return printable(value) if isinstance(value, str) else value


def _metric_names(result: Mapping[str, Any]) -> list[str]:
    names = list(result["dev"]["whole"]["metrics"])
    return [result["metric"], *(n for n in names if n not in (result["metric"], "loss"))]


def _cell(metrics: Mapping[str, float] | None, name: str) -> str:
    return "-" if not metrics else f"{metrics[name]:.4f}"


def _stages(result: Mapping[str, Any]) -> Table:
    """What each stage cost, and each task's part in it."""
    table = Table(show_edge=False, box=None, padding=(0, 2, 0, 0))
    text = any(any(stage["cost"]["tokens"].values()) for stage in result["stages"])
    unit = "tokens" if text else "examples"
    headings = ("stage", "steps", "seconds", unit, "GFLOP")
    for name in (*headings, *(("tok/s", "padding") if text else ()), "GiB", "floor †"):
        if name == "stage":  # names of tasks are not cut
            names = [f"  {task}" for stage in result["stages"] for task in stage["cost"][unit]]
            table.add_column(name, style="dim", min_width=max(map(len, names), default=0))
        else:
            table.add_column(name, justify="right", style="dim")
    for stage in result["stages"]:
        cost, measured = stage["cost"], stage["measured"]
        cells = [
            stage["name"],
            f"{stage['steps']:,}",
            f"{measured['seconds']:.0f}",
            f"{sum(cost[unit].values()):,}",
            _giga(sum(cost["flops"].values())),
        ]
        if text:
            cells += [
                _or_dash(measured["tokens_per_second"], ",.0f"),
                f"{cost['padding_share']:.0%}",
            ]
        peak = measured["peak_memory_bytes"]
        cells.append(_or_dash(peak and peak / 2**30, ".1f"))
        cells.append(_or_dash(measured["floor_share"], ".0%"))
        table.add_row(*cells)
        if len(cost[unit]) > 1:
            for name, count in cost[unit].items():
                table.add_row(f"  {name}", "", "", f"{count:,}", _giga(cost["flops"].get(name, 0)))
    return table


def _giga(flops: int) -> str:
    return f"{flops / 1e9:,.0f}"


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
