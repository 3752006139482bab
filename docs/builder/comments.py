"""What the comments of a config file say of its keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

Path_ = tuple[str, ...]
"""A key's place in a file: `("optimisation", "body_lr")`."""


@dataclass(frozen=True)
class Comments:
    """The comments of a config file.

    Attributes:
        head: what the file says of itself: the comment on its first lines.
        keys: what it says of its keys: the comment behind a key's value, or the lines above it.
    """

    head: str = ""
    keys: dict[Path_, str] = field(default_factory=dict)


def read_comments(path: Path) -> Comments:
    """The comments of a YAML file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if lines and lines[0].startswith("# @package"):
        lines[0] = "#"
    head = []
    for line in lines:
        if not line.startswith("#"):
            break
        head.append(line.lstrip("# "))
    keys: dict[Path_, str] = {}
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if isinstance(root, yaml.MappingNode):
        _collect(root, (), lines, len(head), keys)
    return Comments(" ".join(head).strip(), keys)


def _collect(
    node: yaml.MappingNode, above: Path_, lines: list[str], head: int, keys: dict[Path_, str]
) -> None:
    for key, value in node.value:
        place = (*above, str(key.value))
        line = key.start_mark.line
        scalar = isinstance(value, yaml.ScalarNode) or value.flow_style
        if scalar and value.end_mark.line == line:
            behind = lines[line][value.end_mark.column :]
        else:
            behind = lines[line][key.end_mark.column + 1 :]
        column = key.start_mark.column
        comment = behind.partition("#")[2].strip()
        if comment:
            comment = " ".join([comment, *_lines_below(lines, line, column)])
        else:
            comment = _lines_above(lines, line, column, head)
        if comment:
            keys[place] = comment
        if isinstance(value, yaml.MappingNode):
            _collect(value, place, lines, head, keys)


def _lines_below(lines: list[str], line: int, column: int) -> Iterator[str]:
    """The comment lines below `line` that go on with its own: they begin further right."""
    for text in lines[line + 1 :]:
        stripped = text.strip()
        if not stripped.startswith("#") or text.index("#") <= column:
            return
        yield stripped.lstrip("# ")


def _lines_above(lines: list[str], line: int, column: int, head: int) -> str:
    """The comment lines above `line`, as far left as its key; the file's head is not a key's."""
    found: list[str] = []
    for number in range(line - 1, head - 1, -1):
        stripped = lines[number].strip()
        if not stripped.startswith("#") or lines[number].index("#") != column:
            break
        found.insert(0, stripped.lstrip("# "))
    return " ".join(found)
