"""Refuses options at the top of a config that no run reads."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import fields

from omegaconf import DictConfig, OmegaConf

from tartan.command_line.package_header import HEADER, misplaced_group
from tartan.errors import UserError
from tartan.experiment.settings import RunSettings

log = logging.getLogger(__name__)


def check_top_level(config: DictConfig, beside: Collection[str] = ()) -> None:
    """Check that each name at the top of a config is an option, or that an option refers to it.

    A single value that nothing refers to is only warned of: jobs of a sweep may share one that some
    of them refer to.

    Args:
        config: the config.
        beside: options of the command that are none of a run's.

    Raises:
        UserError: a group of options is none of a run's.
    """
    group = misplaced_group(config)
    if group is not None:
        raise UserError(
            f"the options of {group} are not those of the run: a file of {group}/ needs {HEADER}"
        )
    known = {field.name for field in fields(RunSettings)}
    unknown = {str(name) for name in config} - known - set(beside)
    referred = set(re.findall(r"\$\{(\w+)", OmegaConf.to_yaml(config)))
    for name in sorted(unknown - referred):
        if isinstance(config._get_node(name), Mapping):
            raise UserError(f"there is no option {name}, and no option refers to it")
        log.warning("there is no option %s, and no option refers to it: it has no effect", name)
