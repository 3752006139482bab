"""Checks the built pages: links lead somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    "img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src",
    "audio": "src", "embed": "src", "object": "data",
}  # fmt: skip
"""What a browser fetches by itself, without a click."""
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}


@dataclass
class _Page(HTMLParser):
    """Anchors of a page, where it leads, and what it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _LOADED and _LOADED[tag] in values:
            self.loads.append(values[_LOADED[tag]])
        if tag == "link" and set(values.get("rel", "").split()) & _LOADED_LINKS:
            self.loads.append(values.get("href", ""))


def broken_links(site: Path) -> list[str]:
    """What is wrong with the links of all pages below `site`, one line each, sorted."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path.resolve()] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    found = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for target in page.loads:
            if urlsplit(target).netloc or urlsplit(target).scheme not in ("", "data"):
                found.append(f"{where}: loads {target} from elsewhere")
            else:
                found += [f"{where}: {p}" for p in _problems(target, path, pages, site)]
        for target in page.links:
            found += [f"{where}: {problem}" for problem in _problems(target, path, pages, site)]
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        if "url(http" in text or "url(//" in text or "@import" in text:
            found.append(f"{path.relative_to(site)}: loads from elsewhere")
    return sorted(set(found))


def _problems(target: str, page: Path, pages: dict[Path, _Page], site: Path) -> list[str]:
    try:
        parts = urlsplit(target)
    except ValueError as error:
        return [f"link {target!r} is malformed: {error}"]
    if parts.scheme in ("http", "https"):
        formed = "." in (parts.hostname or "") and " " not in target
        return [] if formed else [f"link {target!r} is malformed"]
    if parts.scheme in ("mailto", "data"):
        return []
    if parts.scheme or parts.netloc:
        return [f"link {target!r} is malformed"]
    aim = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if aim.is_dir():
        aim = aim / "index.html"
    if not aim.is_relative_to(site.resolve()):
        return [f"link {target!r} leaves the site"]
    if not aim.is_file():
        return [f"link {target!r} leads nowhere"]
    if parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].anchors:
        return [f"link {target!r} leads to an anchor that is not there"]
    return []
