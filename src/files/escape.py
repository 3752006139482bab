"""Text from runs, made harmless in Markdown, LaTeX and CSV."""

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
}
_FORMULA = ("=", "+", "-", "@")


def one_line(text: str) -> str:
    """Control characters and line breaks as single spaces."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def markdown(text: str) -> str:
    """With everything escaped that Markdown or HTML would read as more than text."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return _MARKDOWN.sub(lambda m: entities.get(m[1], "\\" + m[1]), one_line(text))


def latex(text: str) -> str:
    """With everything escaped that LaTeX would read as a command."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def csv_cell(text: str) -> str:
    """With an apostrophe before what a spreadsheet would compute."""
    text = one_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text
