"""Tables as Markdown, LaTeX and CSV; text from runs stays text."""

from __future__ import annotations

import io
import re

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from tartan.files import one_line
from tartan.report.tables import (
    Cell,
    ResultTable,
    cells_of,
    to_csv,
    to_latex,
    to_markdown,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "a|b",
    "![x](http://example.org/x.png)",
    "[x](javascript:alert(1))",
    "*b* _i_ `c` ~s~ $m$",
    "\\input{/etc/passwd} & % # ^ ~ _ { }",
    "=1+1",
    "line\nbreak\r\n\x1b[31mred\x00",
    "&lt;b&gt;",
]


def table_with(text):
    best = Cell("70.48 ± 4.42", None, 0.7048, 0.0442, 10, significant=True)
    fewer = Cell("50.00", None, 0.5, None, 1, marks="(1)† ‡")
    first = {text: best, "p, x": Cell("<0.001", value=0.0004), "other": Cell(text)}
    published = dict(zip(first, (fewer, Cell("–"), Cell("no runs")), strict=True))
    rows = [((text, text, False), first), (("acl_arc", "paper", True), published)]
    return ResultTable("t", text, "whole", cells_of(rows, ("task", "runs")), [text])


def visible(html):
    """Text without tags, as a reader sees it."""
    text = re.sub(r"<[^>]*>", " ", html)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, character)
    return " ".join(text.split())


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_text_from_runs_as_it_is(text):
    source = to_markdown(table_with(text))
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(source)
    tags = set(re.findall(r"</?([a-z0-9]+)", html))
    assert tags == {"h3", "table", "thead", "tbody", "tr", "th", "td", "p", "strong", "em"}
    assert visible(html).count(one_line(text)) >= 4
    assert len(re.findall(r"<tr>", html)) == 3


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_has_no_command_that_is_not_ours(text):
    source = to_latex(table_with(text))
    ours = {
        "begin", "toprule", "midrule", "bottomrule", "textbf", "end", "space", "textbackslash",
        "textasciitilde", "textasciicircum",
    }  # fmt: skip
    assert set(re.findall(r"\\([a-zA-Z]+)", source)) <= ours
    body = source.split("\\midrule")[1].split("\\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.strip()]
    assert len(rows) == 2
    for line in rows:
        assert len(re.findall(r"(?<!\\)&", line)) == 4
        assert not re.search(r"(?<!\\)[%#]", line)
        assert line.replace("\\{", "").count("{") == line.replace("\\}", "").count("}")


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_holds_numbers_and_computes_nothing(text):
    frame = pd.read_csv(io.StringIO(to_csv(table_with(text))))
    assert len(frame) == 6
    assert frame["value"].tolist()[:2] == [0.7048, 0.0004]
    assert frame["seeds"].tolist()[0] == 10
    for column in ("row", "whose", "column", "text"):
        assert not any(str(cell).startswith(("=", "+", "-", "@")) for cell in frame[column])
    assert frame["row"][0].removeprefix("'") == one_line(text)
