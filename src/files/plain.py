"""Files of run folders as plain data: bounded in size, typed, nothing in them executed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from src.errors import UserError, first_line

LARGEST = 32 << 20
"""Bytes of the largest JSON or YAML file that is read."""
LONGEST_NAME = 300
"""Characters of a name in a file from elsewhere."""


def is_bounded(info: ValidationInfo) -> bool:
    """Return whether what is validated comes from a file that anybody may have written."""
    return bool(info.context)


def _short(value: str, info: ValidationInfo) -> str:
    if is_bounded(info) and len(value) > LONGEST_NAME:
        said = "String should have at most {most} characters"
        raise PydanticCustomError("string_too_long", said, {"most": LONGEST_NAME})
    return value


Short = Annotated[str, AfterValidator(_short)]
"""A name, not a text."""


class Plain(BaseModel):
    """The checked content of a file; unknown entries are ignored, texts are not made numbers."""

    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, ser_json_inf_nan="constants"
    )


Model = TypeVar("Model", bound=Plain)


def read_json(path: Path, model: type[Model], *, bounded: bool = True) -> Model:
    """Read a JSON file as `model`.

    Args:
        bounded: see `is_bounded`.

    Raises:
        UserError: it cannot be read, is too large, or holds something else; one line.
    """
    content = read_bytes(path)
    try:
        return model.model_validate_json(content, context={"bounded": True} if bounded else None)
    except ValidationError as error:
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise UserError(f"{path.name}: {violation(error)}{more}") from error


def violation(error: ValidationError) -> str:
    """Return the first thing that is wrong with a file's content, and where in it."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def read_yaml(path: Path) -> Any:
    """A YAML file's mappings, lists and scalars; tags and references are refused.

    Raises:
        UserError: it cannot be read, is too large, or is no plain YAML; one line.
    """
    text = read_bytes(path).decode("utf-8", errors="replace")
    try:
        check_no_references(text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path.name}: {first_line(error)}") from error


def check_no_references(text: str) -> None:
    """Refuse YAML in which one place stands for another: a few lines could fill the memory.

    Raises:
        ValueError: there is such a reference.
        yaml.YAMLError: it is no YAML.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("uses YAML references, which no run writes")


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """A file's content.

    Raises:
        UserError: it cannot be read, is no plain file, or larger than `largest` bytes.
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
