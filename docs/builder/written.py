"""Generated pages on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_pages(folder: Path, pages: Mapping[str, str], pattern: str = "*.md") -> None:
    """Let the files of `pattern` in `folder` be `pages`; what stays the same is not touched."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(pattern):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
