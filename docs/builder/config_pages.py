"""A page for each group of configs, and for each program's own options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from docs.builder.docstrings import summary
from docs.builder.options import (
    ConfigFile,
    Option,
    UndescribedError,
    class_of,
    options_of,
    read_config,
    shown,
)
from tartan.methods.stage import Stage

SCHEMAS: dict[str, type] = {"stage": Stage}
"""Groups whose files fill a dataclass without naming it."""

PRESETS = {"debug", "experiment", "search"}
"""Groups whose files have no options of their own: they pick and set others'."""

OTHERS = {"study", "shared", "experiment/shared"}
"""Folders whose files are no options of a run, or only what others have in common."""

_INTRODUCTIONS = {
    "auxiliary": "Which auxiliary tasks there are, and how much of their text is used.",
    "auxiliary_task": "Kinds of auxiliary task. `auxiliary=` brings some; "
    "`+auxiliary_task@auxiliary.NAME=KIND` adds one, whose options are then `auxiliary.NAME.…`.",
    "callbacks": "Callbacks that a run hands to its Trainer, one or more: "
    "`callbacks=early_stopping`, `'callbacks=[early_stopping,learning_rate_monitor]'`; one of your "
    "own by its class: `+callbacks.mine._target_=package.Class`.",
    "classifier": "The end task's head and loss.",
    "debug": "Settings to try a command out with.",
    "encoder": "The shared body, its tokenizer and, where it brings one, its masked-LM head.",
    "language": "In which language the articles of `python -m src.build_corpus` are.",
    "logger": "Where step and dev metrics go, besides `result.json` and `steps.csv`.",
    "method": "A method is a list of stages. Their options are `method.stages.NAME.…`: see "
    "[stage](stage.md).",
    "paths": "Where files are read from and written to.",
    "quality": "Which articles `python -m src.build_corpus` leaves out for what they look like.",
    "stage": "What trains together, for how long, and how. The options of a method's stage are "
    "`method.stages.NAME.OPTION`, for instance `method.stages.joint.batch_size=32`. "
    "`stage@method.stages.dapt=dapt_full` exchanges a whole stage.",
    "task": "The end task.",
    "trainer": "The Lightning Trainer. Its other arguments can be added with `+trainer.NAME=`.",
    "weighting": "How the tasks are mixed into one gradient of the body.",
}
_LONGEST_VALUE = 60
"""Characters beyond which a value is not repeated for each of several choices."""


@dataclass(frozen=True)
class _Choice:
    """A file of a group.

    Attributes:
        file: what it composes to, without what it brings from other groups.
        brings: `(group, place, choice)` of each file of another group that it takes.
    """

    file: ConfigFile
    brings: tuple[tuple[str, str, str], ...]


def config_pages(conf: Path) -> dict[str, str]:
    """Markdown of every page below `reference/config`, by file name.

    Raises:
        UndescribedError: an option has no description.
    """
    programs = sorted(path.stem for path in conf.glob("*.yaml"))
    folders = {path.parent.relative_to(conf).as_posix() for path in conf.rglob("*.yaml")}
    groups = sorted(folders - {".", *OTHERS})
    pages, undescribed = {}, []
    for name in (*programs, *groups):
        try:
            if name in programs:
                pages[f"{_program(name)}.md"] = _program_page(conf, name)
            else:
                page = _presets_page if name in PRESETS else _group_page
                pages[f"{_file(name)}.md"] = page(conf, name)
        except UndescribedError as error:
            undescribed.append(str(error))
    if undescribed:
        raise UndescribedError("\n".join(undescribed))
    pages["index.md"] = _index([_program(name) for name in programs], groups)
    return pages


def _program(name: str) -> str:
    return "run" if name == "config" else name


def _file(group: str) -> str:
    return group.replace("/", ".")


def _index(programs: Sequence[str], groups: Sequence[str]) -> str:
    program_lines, group_lines = "\n".join(programs), "\n".join(map(_file, groups))
    return (
        "# Options\n\n"
        "`GROUP=CHOICE` on the command line takes a file of `conf/GROUP`, `OPTION=VALUE` changes "
        "an option of it, and `+OPTION=VALUE` adds one that the file leaves out. "
        "These pages are generated from the files in `conf` and from the code that reads them.\n\n"
        f"```{{toctree}}\n:caption: Programs\n:maxdepth: 1\n\n{program_lines}\n```\n\n"
        f"```{{toctree}}\n:caption: Groups\n:maxdepth: 1\n\n{group_lines}\n```\n"
    )


def _program_page(conf: Path, name: str) -> str:
    file = read_config(conf, "", name)
    return "\n".join(
        [
            f"# python -m src.{_program(name)}\n",
            f"{_closed(file.head)}\n",
            _table(options_of(file)),
        ]
    )


def _group_page(conf: Path, group: str) -> str:
    schema = SCHEMAS.get(group)
    by_class: dict[object, list[_Choice]] = {}
    for path in sorted((conf / group).glob("*.yaml")):
        choice = _choice(conf, group, path)
        key = schema or class_of(choice.file.values) or choice.file.name
        by_class.setdefault(key, []).append(choice)
    _check_described((choice for choices in by_class.values() for choice in choices), schema)
    parts = [f"# {group}\n", _INTRODUCTIONS.get(group, "") + "\n"]
    for target, choices in by_class.items():
        known = target if isinstance(target, type) else None
        if len(choices) == 1:
            parts += _one_choice(group, choices[0], known)
        else:
            assert known is not None
            parts += _several_choices(group, choices, known, schema)
    return "\n".join(parts)


def _check_described(choices: Iterable[_Choice], schema: type | None) -> None:
    """Name the options without a description in all files of a group, not in its first."""
    undescribed = []
    for choice in choices:
        try:
            options_of(choice.file, schema)
        except UndescribedError as error:
            undescribed.append(str(error))
    if undescribed:
        raise UndescribedError("\n".join(undescribed))


def _choice(conf: Path, group: str, path: Path) -> _Choice:
    brings = []
    for entry in _content(path).get("defaults", []):
        for key, choice in entry.items() if isinstance(entry, dict) else ():
            other, _, place = key.removeprefix("override ").strip("/").partition("@")
            brings.append((other, place.removeprefix(f"{group}.") or other, choice))
    file = read_config(conf, group, path.stem)
    taken = {place.split(".")[0] for _, place, _ in brings}
    values = {key: value for key, value in file.values.items() if key not in taken}
    return _Choice(replace(file, values=values), tuple(brings))


def _one_choice(group: str, choice: _Choice, target: type | None) -> list[str]:
    file = choice.file
    parts = [f"## {group}={file.name}\n", f"{_closed(file.head)} {_class_link(target)}\n"]
    if choice.brings:
        parts.append(_brought(choice) + "\n")
    options = options_of(file)
    if options:
        parts.append(_table(options))
    return parts


def _several_choices(
    group: str, choices: Sequence[_Choice], target: type, schema: type | None
) -> list[str]:
    tables = {choice.file.name: options_of(choice.file, schema) for choice in choices}
    defaults: dict[str, set[str]] = {}
    merged: dict[str, Option] = {}
    for options in tables.values():
        for option in options:
            defaults.setdefault(option.name, set()).add(option.default)
            if option.name not in merged or option.in_file:
                merged[option.name] = option
    if schema is not None:
        order = list(get_type_hints(schema))
        merged = dict(sorted(merged.items(), key=lambda item: order.index(item[0].split(".")[0])))
    varying = {name for name, values in defaults.items() if len(values) > 1}
    names = ", ".join(f"`{choice.file.name}`" for choice in choices)
    parts = [
        f"## {target.__name__}\n",
        f"{_linked_summary(target)} The choices {names} have these options:\n",
        _table(
            replace(option, default="by choice" if option.name in varying else option.default)
            for option in merged.values()
        ),
    ]
    for choice in choices:
        file = choice.file
        own = [o for o in tables[file.name] if o.name in varying and o.in_file]
        lines = [
            f"{o.name}: {o.default}"
            for o in own
            if len(o.default) <= _LONGEST_VALUE and not o.default.endswith(" entries")
        ]
        block = "```yaml\n" + "\n".join(lines) + "\n```\n" if lines else ""
        parts.append(f"### {group}={file.name}\n\n{_closed(file.head)}\n\n{block}")
    return parts


def _set_to(option: Option) -> str:
    return "# required" if option.default == "required" else option.default


def _brought(choice: _Choice) -> str:
    """What a choice takes from other groups, as a list in its order."""
    lines = []
    for group, place, name in choice.brings:
        as_name = "" if place == group else f", as `{place.rpartition('.')[2]}`"
        lines.append(f"- [{group}={name}]({group}.md){as_name}")
    return "\n".join(lines)


def _presets_page(conf: Path, group: str) -> str:
    paths = sorted((conf / group).glob("*.yaml"))
    built_on = {name for path in paths for name in _bases(_content(path))}
    rows = []
    for path in paths:
        picks, values, head = _preset(conf, path)
        if path.stem in built_on and "method" not in picks:
            continue
        lists = [[f"`{name}={value}`" for name, value in d.items()] for d in (picks, values)]
        what = f"`{path.stem}`" + (f"<br>{_closed(head)}" if head else "")
        rows.append([what, *("<br>".join(lines) for lines in lists)])
    introduction = f"`+{group}=NAME` picks from the other groups and sets some of their options."
    table = _markdown_table(["name", "picks", "sets"], rows)
    return f"# {group}\n\n{_INTRODUCTIONS.get(group, '')} {introduction}\n\n{table}"


def _preset(conf: Path, path: Path) -> tuple[dict[str, str], dict[str, str], str]:
    """What a preset and those it builds on pick and set, and its own comment."""
    content = _content(path)
    picks: dict[str, str] = {}
    values: dict[str, str] = {}
    for base in _bases(content):
        folder = conf if base.startswith("/") else path.parent
        inherited, inherited_values, _ = _preset(conf, folder / f"{base.strip('/')}.yaml")
        picks |= inherited
        values |= inherited_values
    for entry in content.pop("defaults", []):
        if isinstance(entry, dict):
            picks |= {k.removeprefix("override ").strip("/"): v for k, v in entry.items()}
    values |= dict(_flat(content, ""))
    comment = re.match(r"(?:# @package.*\n)?((?:#.*\n)*)", path.read_text(encoding="utf-8"))
    assert comment is not None
    return picks, values, " ".join(line.lstrip("# ") for line in comment[1].splitlines())


def _content(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def _bases(content: dict[str, Any]) -> list[str]:
    """The presets that a file builds on, in its own folder or, with a leading slash, in `conf`."""
    return [e for e in content.get("defaults", []) if isinstance(e, str) and e != "_self_"]


def _flat(node: dict[str, Any], above: str) -> Iterable[tuple[str, str]]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", shown(value)


def _table(options: Iterable[Option]) -> str:
    rows = []
    for option in options:
        name = f"`{option.name}`" if option.in_file else f"`{option.name}` (add with `+`)"
        kind = option.type + (f", in {option.unit}" if option.unit else "")
        meaning = _sentence(re.sub(r"(?<![`\w])(None|null)(?![`\w])", "`null`", option.meaning))
        plain = option.default in ("required", "by choice", "")
        default = option.default if plain else f"`{option.default}`"
        rows.append([name, kind, default, meaning])
    return _markdown_table(["option", "type", "default", "meaning"], rows)


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    lines += ["| " + " | ".join(row) + " |" for row in escaped]
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    text = text.strip()
    return _closed(text if text.startswith("`") else text[:1].upper() + text[1:])


def _closed(text: str) -> str:
    return text if not text or text.endswith((".", ":", "…")) else f"{text}."


def _class_link(target: type | None) -> str:
    if target is None or not target.__module__.startswith("tartan."):
        return ""
    return f"Class {{py:obj}}`~{target.__module__}.{target.__name__}`."


def _linked_summary(target: type) -> str:
    return f"{_sentence(summary(target))} {_class_link(target)}"
