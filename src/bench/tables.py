"""Makes the bench's tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from src.bench.ablations import AblationRow
from src.bench.evaluation import EvaluationRow
from src.bench.floor import FloorRow
from src.bench.growth import Growth
from src.bench.memory import MemoryRow
from src.bench.peers import PeerRow
from src.bench.start_up import StartUp
from src.bench.waits import WaitsRow
from src.command_line.tables import titled_table


def floor_table(rows: Sequence[FloorRow], rate: float) -> Table:
    """Return the table of cases and their floors.

    Args:
        rows: the cases.
        rate: throughput of products of large square matrices on the same device [FLOP/s].
    """
    table = titled_table(
        "time of a step, divided by its floor's: median (quartiles)",
        "encoder", "method", "auxiliary tasks", "passes", "time / floor", "in passes, update",
        "s/step", "tokens/s", "padding", "of layers' FLOP/s",
        "of large matrices' FLOP/s",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row.encoder, row.method, str(row.tasks), str(row.passes), str(row.ratio),
            f"{row.inside:.1%}", f"{row.seconds:.3f}", f"{row.tokens / row.seconds:,.0f}",
            f"{row.padding_share:.1%}", f"{row.flops / row.seconds / row.products_rate:.0%}",
            f"{row.flops / row.seconds / rate:.0%}",
        )  # fmt: skip
    return table


def ablation_table(rows: Sequence[AblationRow]) -> Table:
    """Return the table of the time of a step without each optimisation."""
    table = titled_table(
        "time of a META-TARTAN step without an optimisation, divided by that with it",
        "optimisation", "time without / with", "by default",
    )  # fmt: skip
    for row in rows:
        table.add_row(row.name, str(row.ratio), "on" if row.used else "off")
    return table


def peer_table(rows: Sequence[PeerRow]) -> Table:
    """Return the table of other programs' steps."""
    table = titled_table(
        "time of another program's step, divided by this one's", "program", "case", "ratio"
    )
    for row in rows:
        table.add_row(row.peer, row.case, str(row.ratio))
    return table


def memory_table(rows: Sequence[MemoryRow]) -> Table:
    """Return the table of peak memory, and of its growth with each further task."""
    table = titled_table(
        "peak memory of a step",
        "method", "auxiliary tasks", "MiB", "growth for each task, without its head",
    )  # fmt: skip
    firsts: dict[str, MemoryRow] = {}
    for row in rows:
        growth = ""
        if row.method in ("meta_tartan", "aang"):
            first = firsts.setdefault(row.method, row)
            if row.tasks > first.tasks:
                added = (row.peak - row.heads) - (first.peak - first.heads)
                growth = f"{added / (row.tasks - first.tasks) / first.peak:+.2%}"
        table.add_row(row.method, str(row.tasks), f"{row.peak / 2**20:,.0f}", growth)
    return table


def waits_table(rows: Sequence[WaitsRow]) -> Table:
    """Return the table of waits for the GPU."""
    table = titled_table(
        "waits for the GPU in a step", "method", "auxiliary tasks", "waits", "lines"
    )
    for row in rows:
        places = ", ".join(sorted(set(row.places)))
        table.add_row(row.method, str(row.tasks), str(len(row.places)), places)
    return table


def growth_table(rows: Sequence[Growth]) -> Table:
    """Return the table of how a step's time grows with each size."""
    table = titled_table(
        "time of a META-TARTAN step", "size", "from", "to", "s/step", "slope (log-log)"
    )
    for row in rows:
        table.add_row(
            row.along, f"{min(row.sizes):,.0f}", f"{max(row.sizes):,.0f}",
            f"{row.seconds[0]:.3f} to {row.seconds[-1]:.3f}",
            f"{row.slope:.2f} ± {row.slope_error:.2f}",
        )  # fmt: skip
    return table


def evaluation_table(rows: Sequence[EvaluationRow]) -> Table:
    """Return the table of the throughput of evaluations."""
    table = titled_table("evaluation of dev", "encoder", "examples/s", "tokens/s")
    for row in rows:
        rate = row.examples_per_second
        table.add_row(
            row.encoder, f"{rate.median:,.0f} ({rate.low:,.0f} to {rate.high:,.0f})",
            f"{row.tokens_per_second:,.0f}",
        )  # fmt: skip
    return table


def start_table(rows: Sequence[StartUp]) -> Table:
    """Return the table of starts; the last one found all texts in the cache.

    The throughput of preparing texts is the number of texts, divided by the time that a start takes
    longer than the last one.
    """
    table = titled_table(
        "time from the command", "start", "s to the first step", "s to the end", "prepared texts/s"
    )
    for row in rows:
        longer = row.seconds - rows[-1].seconds
        rate = f"{row.lines / longer:,.0f}" if row is not rows[-1] and longer > 0 else ""
        table.add_row(row.what, f"{row.seconds:.1f}", f"{row.seconds_to_end:.1f}", rate)
    return table
