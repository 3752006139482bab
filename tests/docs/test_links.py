"""Links work on built pages, and where the repository's page shows Markdown as it stands."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from docs.builder.links import broken_links
from tests.conftest import ROOT

OTHER = '<h2 id="there">There</h2>'


def problems(folder, body):
    (folder / "other.html").write_text(OTHER)
    (folder / "index.html").write_text(f"<html><body id='top'>{body}</body></html>")
    return broken_links(folder)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">a</a>', "leads nowhere"),
        ('<a href="other.html#gone">a</a>', "anchor that is not there"),
        ('<a href="../outside.html">a</a>', "leaves the site"),
        ('<a href="https://exa mple.org/">a</a>', "malformed"),
        ('<img src="gone.png">', "leads nowhere"),
        ('<img src="https://example.org/a.png">', "from elsewhere"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "from elsewhere"),
    ],
)
def test_a_bad_link_is_named_with_its_page(tmp_path, body, problem):
    (found,) = problems(tmp_path, body)
    assert found.startswith("index.html: ")
    assert problem in found


def parsed(page: Path):
    """A page's tokens, and all links and pictures in them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    inside = [child for token in tokens for child in token.children or ()]
    return tokens, [
        str(token.attrGet("href") or token.attrGet("src"))
        for token in inside
        if token.type in ("link_open", "image")
    ]


def anchors(page: Path) -> set[str]:
    """The anchors that a repository's page gives a file's headings."""
    tokens, _ = parsed(page)
    titles = [
        after.content.strip().lower()
        for token, after in pairwise(tokens)
        if token.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def dead_on_the_repository_page(page: Path, there: set[Path]):
    """What of a Markdown file leads nowhere, or shows nothing, without a build.

    Args:
        page: the file.
        there: all files that the repository has.
    """
    tokens, links = parsed(page)
    for link in links:
        path, _, anchor = unquote(link).partition("#")
        aim = (page.parent / path).resolve() if path else page
        if re.match(r"\w+:", link):
            continue
        if not any(file == aim or aim in file.parents for file in there):
            yield f"{link} leads nowhere"
        elif anchor and anchor not in anchors(aim):
            yield f"{link} leads to an anchor that is not there"
    for token in tokens:
        shown = re.match(r"\{(?:literal)?include\}\s*(\S+)", token.info)
        if token.type == "fence" and shown and shown[1] not in links:
            yield f"{shown[1]} is shown by a build only, and no link leads to it"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only Git knows what is not generated")
def test_all_links_work_on_the_repository_page():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    there = {ROOT / name for name in listed.stdout.splitlines()}
    front = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
    below = [path for path in there if path.suffix == ".md" and ROOT / "docs" in path.parents]
    pages = [*front, *sorted(below)]
    assert ROOT / "docs" / "index.md" in pages
    dead = {
        str(page.relative_to(ROOT)): problems
        for page in pages
        if (problems := list(dead_on_the_repository_page(page, there)))
    }
    assert dead == {}
