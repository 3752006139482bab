"""Names of tasks: the end task's, and those that composed objectives and their factors have."""

from __future__ import annotations

END_TASK = "end_task"
"""The name under which the end task's loss and weight are reported."""
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
