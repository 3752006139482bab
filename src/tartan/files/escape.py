"""Escapes text from runs, so that it does nothing in Markdown, LaTeX and CSV."""

from __future__ import annotations

import re

_MARKDOWN = re.compile(r"([\\`*_{}\[\]|~<>&$])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "§": r"\S{}",
}
_FORMULA = ("=", "+", "-", "@")
"""First characters of a cell that a spreadsheet takes for a formula."""


def one_line(text: str) -> str:
    """Return the text on one line: control characters and line breaks become single spaces."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def escape_markdown(text: str) -> str:
    """Return the text on one line, with all Markdown and HTML syntax escaped."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return _MARKDOWN.sub(lambda m: entities.get(m[1], "\\" + m[1]), one_line(text))


def code_block(text: str, language: str) -> str:
    """Return the text as a block of code in Markdown, with a fence that does not occur in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}{language}\n{text}\n{fence}"


def escape_latex(text: str) -> str:
    """Return the text on one line, with all LaTeX syntax escaped."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def escape_csv_cell(text: str) -> str:
    """Return the text on one line, with an apostrophe before what a spreadsheet would compute."""
    text = one_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text
