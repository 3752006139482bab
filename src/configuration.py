"""From Hydra's configuration to objects, with errors of one line that name the option."""

from __future__ import annotations

from typing import Any, TypeVar

import hydra
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from src.errors import UserError

T = TypeVar("T")


def build(node: Any, option: str, **arguments: Any) -> Any:
    """Instantiate what `node._target_` names, with `arguments` besides the node's own.

    Raises:
        UserError: the arguments do not fit, or the target says so itself.
    """
    try:
        return hydra.utils.instantiate(node, _convert_="all", **arguments)
    except InstantiationException as error:
        cause = _root_cause(error)
        if isinstance(cause, UserError):
            raise UserError(str(cause)) from error
        if isinstance(cause, ImportError):
            raise UserError(f"{option} cannot be imported: {_first_line(cause)}") from error
        raise UserError(f"{option}: {_first_line(cause)}") from error
    except OmegaConfBaseException as error:
        raise UserError(f"{option}: {_first_line(error)}") from error


def typed(node: DictConfig, schema: type[T], option: str) -> T:
    """The dataclass `schema` filled from `node`, every value checked against its declared type.

    Raises:
        UserError: an unknown option, or a value of the wrong type.
    """
    try:
        values = OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
        merged = OmegaConf.merge(OmegaConf.structured(schema), values)
        filled = OmegaConf.to_object(merged)
    except UserError as error:  # from a dataclass's own checks, which know their field only
        raise UserError(f"{option}.{error}") from error
    except OmegaConfBaseException as error:
        key = f"{option}.{error.full_key}" if error.full_key else option
        raise UserError(f"{key}: {_first_line(error)}") from error
    assert isinstance(filled, schema)
    return filled


def check_whole(value: object, option: str, least: int) -> int:
    """`value`, checked.

    Raises:
        UserError: it is not a whole number, or less than `least`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"{option} must be a whole number of at least {least}, got {value!r}")
    return value


def _root_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
