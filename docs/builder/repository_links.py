"""Links that lead to files on the repository's page, and to pages in the built documentation."""

from __future__ import annotations

from sphinx.application import Sphinx

_BUILT = {
    "../notebooks/": "notebooks/",
    "../../notebooks/": "",
    "../CONTRIBUTING.md": "extending.md",
}
"""Where a link begins, and the page that is built of what it leads to."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Lead such links to the built pages."""
    app.connect("source-read", _lead_to_built_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _lead_to_built_pages(app: Sphinx, page: str, source: list[str]) -> None:
    for file, built in _BUILT.items():
        source[0] = source[0].replace(f"]({file}", f"]({built}")
