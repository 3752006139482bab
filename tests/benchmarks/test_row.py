"""Tables show each field of a row."""

from __future__ import annotations

import io
from dataclasses import dataclass

from rich.console import Console

from benchmarks.measure import Ratio
from benchmarks.row import Row, table_of


@dataclass(frozen=True)
class Measured(Row):
    title = "what was measured"
    method: str
    number_of_tasks: int
    seconds: float
    rates: list[float]
    ratio: Ratio
    growth: float | None


def test_numbers_are_rounded_and_what_is_not_there_is_left_out():
    rows = [
        Measured("fast", 1200, 0.12345, [1.0, 23456.7], Ratio(1.5, 1.0, 2.0, 3), None),
        Measured("slow", 1, 12.0, [], Ratio(1.5, 1.0, 2.0, 3), -0.25),
    ]
    console = Console(width=120, file=io.StringIO())
    console.print(table_of(rows))
    title, _, heading, _, fast, slow, _ = console.file.getvalue().splitlines()
    assert title.strip() == "what was measured"
    assert "number of tasks" in heading
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in (fast, slow)]
    assert cells == [
        ["fast", "1,200", "0.123", "1, 23,457", "1.500 (1.000 to 2.000)", ""],
        ["slow", "1", "12", "", "1.500 (1.000 to 2.000)", "-0.25"],
    ]
