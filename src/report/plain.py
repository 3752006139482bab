"""Files of run folders as plain data: bounded in size, typed, nothing in them executed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from src.errors import UserError
from src.run_folder.stored import check_no_references

LARGEST = 32 << 20
"""Bytes of the largest JSON or YAML file that is read."""
Short = Annotated[str, StringConstraints(max_length=300)]
"""A name, not a text."""


class Plain(BaseModel):
    """What a file holds, checked; unknown entries are ignored, numbers are not made of texts."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


Model = TypeVar("Model", bound=Plain)


def read_json(path: Path, model: type[Model]) -> Model:
    """A JSON file as `model`.

    Raises:
        UserError: it cannot be read, is too large, or holds something else; one line.
    """
    content = read_bytes(path)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise UserError(f"{path.name}: {what}{more}") from error


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
        raise UserError(f"{path.name}: {_first_line(error)}") from error


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


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
