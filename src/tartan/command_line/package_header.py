"""Finds options that are not in their place as their file lacks its first line."""

from __future__ import annotations

from collections.abc import Mapping

from omegaconf import DictConfig, OmegaConf

HEADER = 'the line "# @package _global_" as its first line, before any other comment'
"""What the files of some groups need: Hydra looks no further than the first other line."""
_OF_THE_WHOLE = ("experiment", "search", "debug")
"""Groups whose files set options of the whole config."""


def misplaced_group(config: DictConfig) -> str | None:
    """Return the group whose file lacks its first line; None if there is none.

    Its options landed below `experiment.` (or `search.`, ...) instead of at the top. A file of
    `method/` may do without the line, if it names its options without `method`.
    """
    for group in _OF_THE_WHOLE:
        landed_below = isinstance(config.get(group), Mapping)
        # what other options refer to is meant to be there
        if landed_below and f"${{{group}." not in OmegaConf.to_yaml(config):
            return group
    method = config.get("method")
    doubled = isinstance(method, Mapping) and isinstance(method.get("method"), Mapping)
    return "method" if doubled else None
