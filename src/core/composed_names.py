"""How composed objectives and their factors are named."""

from __future__ import annotations

SEPARATOR = "-"
"""Between the parts of an objective's name: `task-mask-bidirectional-denoise`."""
STAGES = ("data", "transform", "representation", "output")
"""What the parts are, in that order."""
JOINT = "objective"
"""The stage of factors whose choices are whole objectives."""


def parts_of(name: str) -> tuple[str, ...] | None:
    """An objective's parts, one a stage; None where the name is not that of a composed one."""
    parts = tuple(name.split(SEPARATOR))
    return parts if len(parts) == len(STAGES) and all(parts) else None
