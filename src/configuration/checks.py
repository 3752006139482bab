"""Checks of single values, with errors that show them as a config file does."""

from __future__ import annotations

import math

from src.configuration.words import shown
from src.errors import UserError


def check_whole(value: object, option: str, least: int) -> int:
    """`value`, checked.

    Raises:
        UserError: it is not a whole number, or less than `least`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"{option} must be a whole number of at least {least}, got {shown(value)}")
    return value


def check_number(value: object, option: str, least: float = -math.inf) -> float:
    """`value`, checked.

    Raises:
        UserError: it is not a finite number, or less than `least`.
    """
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number) or number < least:
        at_least = "" if least == -math.inf else f" of at least {least:g}"
        raise UserError(f"{option} must be a finite number{at_least}, got {shown(value)}")
    return float(number)
