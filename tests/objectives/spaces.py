"""Builds the spaces of objectives in `conf/auxiliary/`."""

from __future__ import annotations

from functools import cache

from tartan.data.objective_space import ObjectiveSpace
from tartan.settings import build
from tests.in_process import config_of


@cache
def space(name: str) -> ObjectiveSpace:
    """Return the space of objectives of `auxiliary=NAME`."""
    found: ObjectiveSpace = build(config_of([f"auxiliary={name}"]).auxiliary.aang, "auxiliary.aang")
    return found
