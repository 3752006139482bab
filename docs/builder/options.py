"""Every option of every config file: its type, unit, default and meaning."""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import get_class
from omegaconf import OmegaConf

from docs.builder.comments import Comments, Path_, read_comments
from docs.builder.docstrings import arguments, default_of, parameters
from docs.builder.words import words
from tartan.corpus.steps import Options
from tartan.data.prepared import AuxiliarySettings
from tartan.predict.predict import Settings
from tartan.runs.prepare import RunSettings, TrainerSettings
from tartan.settings import hints_of

TYPES: dict[str, type] = {
    "config": RunSettings,
    "check": RunSettings,
    "build_corpus": Options,
    "predict": Settings,
    "auxiliary": AuxiliarySettings,
    "trainer": TrainerSettings,
}
"""What declares the options of a program's own file, or of a group's that name no class of ours."""
_UNIT = re.compile(r"\s*\[([a-z][^\]]*)\]\.?\s*$")
"""A description's end: `[steps]`, or `[whole number; steps]` where no code declares the type."""


class UndescribedError(Exception):
    """Options that nobody has described."""


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        name: as it is written below its group: `meta_head.steps`.
        type: in the words of the error messages.
        unit: what it counts or measures; empty for a text or a plain number.
        default: as YAML has it.
        meaning: one or two sentences, in Markdown.
        in_file: whether the config file has it; if not, the command line adds it with `+`.
    """

    name: str
    type: str
    unit: str
    default: str
    meaning: str
    in_file: bool = True


@dataclass(frozen=True)
class ConfigFile:
    """A config file that was read.

    Attributes:
        name: its name without `.yaml`.
        head: what it says of itself.
        values: what it composes to, interpolations left as they are.
        comments: of its keys, and of those of the files it builds on.
        path: where it is.
        types: what declares its options, where no class of ours that it names does.
    """

    name: str
    head: str
    values: dict[str, Any]
    comments: dict[Path_, str]
    path: Path
    types: type | None = None


def read_config(conf: Path, group: str, name: str) -> ConfigFile:
    """Compose one file of a group by itself (group `""`: a file of `conf` itself)."""
    path = conf / group / f"{name}.yaml"
    own = read_comments(path)
    comments = _inherited(conf, path, own)
    # a file of package _global_ has its group's name around its options
    comments |= {place[1:]: text for place, text in own.keys.items() if place[0] == group}
    values = _values(conf, group, name)
    return ConfigFile(name, own.head, values, comments, path, TYPES.get(group or name))


def _values(conf: Path, group: str, name: str) -> dict[str, Any]:
    content = yaml.safe_load((conf / group / f"{name}.yaml").read_text(encoding="utf-8")) or {}
    if not group or "/" in group:  # what it composes has pages of its own, or is Hydra's
        return {key: value for key, value in content.items() if key not in ("defaults", "hydra")}
    if any("override" in str(entry) for entry in content.get("defaults", [])):
        return dict(content.get(group, {}))  # it composes only with the files that it overrides
    with warnings.catch_warnings(), initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        warnings.filterwarnings("ignore", ".*missing `_self_`")  # only where a file is the root
        node = OmegaConf.to_container(compose(f"{group}/{name}"), resolve=False)
    assert isinstance(node, dict)
    values = node.get(group)
    return values if isinstance(values, dict) else {}


def _inherited(conf: Path, path: Path, own: Comments) -> dict[Path_, str]:
    """Comments of a file and, where it has none, of the files of its group that it builds on."""
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    found: dict[Path_, str] = {}
    for entry in content.get("defaults", []):
        if isinstance(entry, str) and entry != "_self_":
            base = path.parent / f"{entry}.yaml"
            if base.exists():  # a plugin of Hydra's brings its own
                found |= _inherited(conf, base, read_comments(base))
    return found | own.keys


def options_of(file: ConfigFile, schema: type | None = None) -> list[Option]:
    """All options of a file, in its order, then those that only the code knows.

    Args:
        schema: the dataclass that the file fills; None where `_target_` says it, or nothing does.

    Raises:
        UndescribedError: some have no description, or no type can be told.
    """
    missing: list[str] = []
    found = list(_walk(file.values, (), schema, file, missing))
    if missing:
        raise UndescribedError(
            "\n".join(
                f"{file.path}: {what}; say it in a comment behind it, or in the docstring of its "
                "class"
                for what in missing
            )
        )
    return found


def _walk(
    node: Mapping[str, Any], above: Path_, schema: type | None, file: ConfigFile, missing: list[str]
) -> Iterator[Option]:
    target = class_of(node) or schema
    ours = target is not None and target.__module__.startswith("tartan.")
    declares = target if ours else None if above else file.types
    hints = hints_of(declares) if declares is not None else {}
    texts = arguments(target) if target is not None and ours else {}
    for key, value in node.items():
        place = (*above, str(key))
        if key == "_target_":
            continue
        hint = hints.get(key)
        text = texts.get(key) or file.comments.get(place, "")
        inner = hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else None
        if isinstance(value, Mapping) and (inner or class_of(value) or _has_described(file, place)):
            yield from _walk(value, place, inner, file, missing)
            continue
        yield _option(".".join(place), value, hint, text, missing)
        yield from _entries(value, place, file, missing)
    if target is not None and ours:
        yield from _only_in_code(target, above, node, missing)


def _has_described(file: ConfigFile, place: Path_) -> bool:
    """Whether a file describes what is in the mapping at `place`, rather than it as a whole."""
    return any(len(other) > len(place) and other[: len(place)] == place for other in file.comments)


def _entries(value: Any, place: Path_, file: ConfigFile, missing: list[str]) -> Iterator[Option]:
    """The options of a list's entries, where these are objects of one class."""
    if isinstance(value, list) and value and isinstance(value[0], Mapping) and class_of(value[0]):
        above = (*place[:-1], f"{place[-1]}[]")
        yield from _walk(value[0], above, None, file, missing)


def _only_in_code(
    target: type, above: Path_, node: Mapping[str, Any], missing: list[str]
) -> Iterator[Option]:
    """Arguments with a default that the file leaves out."""
    texts, hints = arguments(target), hints_of(target)
    for name, parameter in parameters(target).items():
        default = default_of(parameter)
        plain = default is None or isinstance(default, bool | int | float | str)
        if name in node or parameter.default is inspect.Parameter.empty or not plain:
            continue
        option = _option(
            ".".join((*above, name)), default, hints.get(name), texts.get(name, ""), missing
        )
        yield dataclasses.replace(option, in_file=False)


def _option(name: str, value: Any, hint: Any, text: str, missing: list[str]) -> Option:
    unit_match = _UNIT.search(text)
    unit = unit_match[1] if unit_match else ""
    meaning = _UNIT.sub("", text)
    if hint is not None:
        kind = type_words(hint)
        if ";" in unit:
            missing.append(f"{name} has its type from the code: [UNIT] alone")
    elif ";" in unit:
        kind, _, unit = (part.strip() for part in unit.partition(";"))
    elif value is not None and value != "???":
        kind = _words_of_value(value)
    elif unit:
        kind, unit = unit, ""
    else:
        kind = ""
        missing.append(f"{name} has no type: end its description with [TYPE] or [TYPE; UNIT]")
    if not meaning:
        missing.append(f"{name} has no description")
    return Option(name, kind, unit, shown(value), meaning)


def type_words(hint: Any) -> str:
    """A declared type in words, those of the error messages."""
    return re.sub(r"\ban? (?=\w)", "", words(hint))


def shown(value: Any) -> str:
    """A default as YAML has it, on one line; `required` where there is none."""
    if value == "???":
        return "required"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return f"{len(value)} entries"
    if value is dataclasses.MISSING:
        return ""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return str(text).removesuffix("\n...\n").strip()


def _words_of_value(value: Any) -> str:
    if isinstance(value, list | Mapping):
        return "list" if isinstance(value, list) else "mapping"
    return type_words(type(value))


def class_of(node: object) -> type | None:
    """The class that a node's `_target_` names."""
    target = node.get("_target_") if isinstance(node, Mapping) else None
    return get_class(target) if isinstance(target, str) else None
