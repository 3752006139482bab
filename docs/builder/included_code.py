"""Includes a function's source in a page, below a comment `code: MODULE:NAME`.

The page holds the code too, for readers of its file on the repository's page; a test holds that
copy equal, and the build does not use it.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from importlib import import_module
from operator import attrgetter

from sphinx.application import Sphinx

_BLOCK = re.compile(r"(<!-- code: ([\w.]+):([\w.]+) -->\n+```python\n).*?(?=```\n)", re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Put the source into each page that has such a comment."""
    app.connect("source-read", _include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def with_code(page: str) -> str:
    """Return the page with the present source in each block below such a comment."""

    def source_of(block: re.Match[str]) -> str:
        found = attrgetter(block[3])(import_module(block[2]))
        return block[1] + textwrap.dedent(inspect.getsource(found))

    return _BLOCK.sub(source_of, page)


def _include(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = with_code(source[0])
