"""Reads JSON and YAML files as plain data: limited in size, typed, never executed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from tartan.errors import UserError, first_line

LARGEST = 32 << 20
"""Maximum size of a JSON or YAML file that is read [bytes]."""
_DEEPEST = 100
"""Maximum number of lists and mappings of a YAML file within each other."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Makes plain data only, in C where PyYAML was built with it."""
LONGEST_NAME = 300
"""Maximum length of a name in a file from elsewhere [characters]."""


def is_bounded(info: ValidationInfo) -> bool:
    """Return whether lengths are limited, because anybody may have written the validated file."""
    return bool(info.context)


def _short(value: str, info: ValidationInfo) -> str:
    if is_bounded(info) and len(value) > LONGEST_NAME:
        said = "String should have at most {most} characters"
        raise PydanticCustomError("string_too_long", said, {"most": LONGEST_NAME})
    return value


Short = Annotated[str, AfterValidator(_short)]
"""A name; in a file from elsewhere it has at most `LONGEST_NAME` characters."""


class Plain(BaseModel):
    """The checked content of a file; unknown entries are ignored, and strings are not converted."""

    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, ser_json_inf_nan="constants"
    )


Model = TypeVar("Model", bound=Plain)


def read_json(path: Path, model: type[Model], *, bounded: bool = True) -> Model:
    """Read a JSON file as `model`.

    Args:
        path: the file.
        model: the type to check the content against.
        bounded: see `is_bounded`.

    Raises:
        UserError: the file cannot be read, is too large, or does not fit the model.
    """
    content = read_bytes(path)
    try:
        return model.model_validate_json(content, context={"bounded": True} if bounded else None)
    except ValidationError as error:
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise UserError(f"{path.name}: {violation(error)}{more}") from error


def violation(error: ValidationError) -> str:
    """Return the first error in a file's content, and where it is."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def read_yaml(path: Path) -> Any:
    """Return a YAML file's mappings, lists and scalars; tags and references are refused.

    Raises:
        UserError: the file cannot be read, is too large, or is not plain YAML.
    """
    text = read_bytes(path).decode("utf-8", errors="replace")
    try:
        return parse_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path.name}: {first_line(error)}") from error


def parse_yaml(text: str) -> Any:
    """Return the mappings, lists and scalars of a YAML text; tags and references are refused.

    Raises:
        ValueError: there is a reference, or lists and mappings are nested too deeply.
        yaml.YAMLError: the text is not plain YAML.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            # with which a few lines could fill the memory
            raise ValueError("uses YAML references, which no run writes")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ValueError(f"lists and mappings are nested more than {_DEEPEST} deep")
    return yaml.load(text, Loader=_LOADER)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return plain values, of which `change` was applied to all texts, names of entries too."""
    if isinstance(value, dict):
        return {map_texts(k, change): map_texts(entry, change) for k, entry in value.items()}
    if isinstance(value, list):
        return [map_texts(entry, change) for entry in value]
    return change(value) if isinstance(value, str) else value


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return a file's content.

    Raises:
        UserError: the file cannot be read, is not a regular file, or is larger than `largest`
            bytes.
    """
    try:
        if not path.is_file():
            raise UserError(f"{path.name} is not there")
        size = path.stat().st_size
        if size > largest:
            raise UserError(f"{path.name} is too large ({size:,} bytes)")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path.name} cannot be read ({error.strerror})") from error
