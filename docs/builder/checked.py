"""A Sphinx extension: the build fails where `broken_links` finds any."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

from docs.builder.links import broken_links


class LinkError(SphinxError):
    """Links that lead nowhere, or pages that load something from elsewhere."""

    category = "Link error"


def setup(app: Sphinx) -> dict[str, bool]:
    """Check what was built."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _check(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        problems = broken_links(Path(app.outdir))
        if problems:
            raise LinkError("\n".join(problems))
