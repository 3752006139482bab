"""Links of built pages."""

from __future__ import annotations

import pytest

from docs.builder.links import broken_links

OTHER = '<h2 id="there">There</h2>'


def problems(folder, body):
    (folder / "other.html").write_text(OTHER)
    (folder / "index.html").write_text(f"<html><body id='top'>{body}</body></html>")
    return broken_links(folder)


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html">a</a>',
        '<a href="other.html#there">a</a>',
        '<a href="#top">a</a>',
        '<a href="https://example.org/a?b=c#d">a</a>',
        '<a href="mailto:a@example.org">a</a>',
        '<img src="data:image/png;base64,AAAA">',
        '<link rel="canonical" href="https://example.org/">',
    ],
)
def test_a_good_link_is_no_problem(tmp_path, body):
    assert problems(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">a</a>', "leads nowhere"),
        ('<a href="other.html#gone">a</a>', "anchor that is not there"),
        ('<a href="#gone">a</a>', "anchor that is not there"),
        ('<a href="../outside.html">a</a>', "leaves the site"),
        ('<a href="https://exa mple.org/">a</a>', "malformed"),
        ('<a href="http:///path">a</a>', "malformed"),
        ('<a href="htp://example.org">a</a>', "malformed"),
        ('<img src="gone.png">', "leads nowhere"),
        ('<img src="https://example.org/a.png">', "from elsewhere"),
        ('<script src="//example.org/a.js"></script>', "from elsewhere"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "from elsewhere"),
    ],
)
def test_a_bad_link_is_named_with_its_page(tmp_path, body, problem):
    (found,) = problems(tmp_path, body)
    assert found.startswith("index.html: ")
    assert problem in found


def test_a_style_that_loads_from_elsewhere_is_found(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/font.woff) }")
    assert broken_links(tmp_path) == ["a.css: loads from elsewhere"]
