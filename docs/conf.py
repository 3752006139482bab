"""Sphinx's configuration: `make docs`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ConfigError

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from docs.builder.api_pages import api_pages, markdown_code  # noqa: E402
from docs.builder.config_pages import config_pages  # noqa: E402
from docs.builder.options import UndescribedError  # noqa: E402
from docs.builder.written import write_pages  # noqa: E402

project = "TARTAN"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
author = ""
copyright = ""
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "docs.builder.mathml",
    "docs.builder.checked",
    "docs.builder.included_code",
    "docs.builder.repository_links",
]
exclude_patterns = ["_build", "builder"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the tests run the notebooks; here their stored output is shown

default_role = "code"
html_math_renderer = "mathml"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False  # Lightning's refer to pages of its own
napoleon_use_ivar = True
suppress_warnings = [
    "ref.python",  # a bare name in a docstring that several classes have
    "config.cache",
]

html_theme = "furo"
html_title = f"TARTAN {release}"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx reads any."""
    app.connect("builder-inited", _generate)
    app.connect("autodoc-process-docstring", _hide_attribute, priority=400)
    app.connect("autodoc-process-docstring", _docstring, priority=600)


def _generate(app: Sphinx) -> None:
    try:
        write_pages(DOCS / "reference" / "config", config_pages(ROOT / "conf"))
    except UndescribedError as error:
        raise ConfigError(str(error)) from error
    write_pages(DOCS / "reference" / "api", api_pages(ROOT / "src" / "tartan"))
    notebooks = (ROOT / "notebooks").glob("*.ipynb")  # Sphinx reads only what is below its folder
    copies = {path.name: path.read_text(encoding="utf-8") for path in notebooks}
    write_pages(DOCS / "notebooks", copies, "*.ipynb")


_HIDDEN: dict[str, list[str]] = {}


def _hide_attribute(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Keep an attribute's text from Napoleon, which takes what is before a colon for its type."""
    if what in ("attribute", "data"):
        _HIDDEN[name] = list(lines)
        lines.clear()


def _docstring(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    lines[:] = _HIDDEN.pop(name, lines)
    markdown_code(lines)
