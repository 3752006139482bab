"""Reserves names that auxiliary tasks must not have."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from torch import nn

from tartan.core.task_names import END_TASK
from tartan.errors import UserError
from tartan.settings import Checked, Natural, Size

META_GRADIENT, META_HEAD = "meta_gradient", "meta_head"
"""Names, beside the tasks', under which costs are reported."""


@dataclass
class AuxiliarySettings(Checked):
    """Options below `auxiliary` that hold for all auxiliary tasks."""

    size: Size = 1
    seed: Natural = 0
    decontaminate: bool = False


SETTINGS = tuple(field.name for field in fields(AuxiliarySettings))
"""Keys of the `auxiliary` group that are options, not tasks."""
_NAME = re.compile(r"[\w-]+")


def check_task_name(name: str) -> None:
    """Check that an auxiliary task may have this name.

    Raises:
        UserError: the name is reserved or malformed; the message says why.
    """
    if name in SETTINGS:
        why = f"auxiliary.{name} holds for all of them"
    elif name == END_TASK:
        why = "that is the labelled task"
    elif name in (META_GRADIENT, META_HEAD):
        why = "a cost of the run is reported under it"
    elif not _NAME.fullmatch(name):
        why = "a name is made of letters, digits, '_' and '-'"
    elif hasattr(nn.ModuleDict(), name):
        why = "PyTorch's ModuleDict, which holds the heads, has an attribute of that name"
    else:
        return
    raise UserError(f"an auxiliary task cannot be named {name!r}: {why}; give it another name")
