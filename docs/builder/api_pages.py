"""A page for each package: its modules, with what their docstrings say."""

from __future__ import annotations

import re
from pathlib import Path

_ONE_WORD = re.compile(r"[A-Za-z_][\w.]*")
_CODE = re.compile(r"(?<![`:\\])`([^`]+)`(?!`)(?=(\w?))")


def api_pages(source: Path) -> dict[str, str]:
    """Markdown of every page below `reference/api`, by file name.

    Args:
        source: the folder of the package `tartan`.
    """
    packages = [source, *sorted(path.parent for path in source.rglob("*/__init__.py"))]
    pages = {}
    for folder in packages:
        package = ".".join(("tartan", *folder.relative_to(source).parts))
        stems = sorted(path.stem for path in folder.glob("*.py"))
        modules = [f"{package}.{stem}" for stem in stems if not stem.startswith("_")]
        if modules:
            pages[f"{package}.md"] = _page(package, modules)
    names = "\n".join(name.removesuffix(".md") for name in sorted(pages))
    pages["index.md"] = (
        "# Python\n\nWhat the modules offer, from their docstrings. "
        "Whatever begins with an underscore is left out.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n"
    )
    return pages


def _page(package: str, modules: list[str]) -> str:
    parts = [f"# {package}\n"]
    if package != "tartan":
        parts.append(f"```{{eval-rst}}\n.. automodule:: {package}\n   :no-index:\n```\n")
    for module in modules:
        directive = f".. automodule:: {module}\n   :members:"
        parts.append(f"## {module.rpartition('.')[2]}\n\n```{{eval-rst}}\n{directive}\n```\n")
    return "\n".join(parts)


def markdown_code(lines: list[str]) -> None:
    """Turn a docstring's Markdown code into reStructuredText's, in place; a name becomes a link."""
    text = "\n".join(lines)
    lines[:] = _CODE.sub(_as_rst, text).split("\n")


def _as_rst(found: re.Match[str]) -> str:
    code = " ".join(found[1].split())
    end = "\\ " if found[2] else ""  # reStructuredText ends code at a word's end only
    if _ONE_WORD.fullmatch(code):
        return f":py:obj:`{code}`{end}"
    return f"``{code}``{end}"
