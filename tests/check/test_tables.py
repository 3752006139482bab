"""What the terminal shows fits 80 columns."""

from __future__ import annotations

import io

from rich.console import Console

from tartan.check.tables import _print_items, escape
from tartan.command_line.tables import titled_table


def test_options_are_not_broken_between_lines():
    console = Console(width=40, record=True, file=io.StringIO())
    option = "method.stages.joint.meta_head.examples_from=rest"
    _print_items(console, "Title", [f"some words and [brackets] before {option} and after"])
    text = console.export_text()
    assert f"\n  {option}\n" in text
    assert text.startswith("\nTitle\n- some words and [brackets] before\n")


def test_what_a_table_holds_does_not_command_the_terminal():
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    _print_items(console, "Title", ["labels '\x1b[2J\x9b1m' and [bold]brackets[/bold]"])
    table = titled_table("labels", "label")
    table.add_row(escape("\x1b]0;owned\x07"))
    console.print(table)
    shown = console.file.getvalue()
    assert "\x1b" not in shown
    assert "\\x1b[2J\\x9b1m" in shown
    assert "[bold]brackets[/bold]" in shown
