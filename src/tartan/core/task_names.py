"""Names of tasks: the end task's, and those of composed objectives and their factors."""

END_TASK = "end_task"
"""The name under which the end task's loss and weight are reported."""
META_GRADIENT, META_HEAD = "meta_gradient", "meta_head"
"""Names, beside the tasks', under which costs are reported."""
SEPARATOR = "-"
"""Separator of the parts in an objective's name: `task-mask-bidirectional-denoise`."""
STAGES = ("data", "transform", "representation", "output")
"""The kinds of parts in an objective's name, in order."""
JOINT = "objective"
"""The kind of the factors whose choices are whole objectives."""


def parts_of(name: str) -> tuple[str, ...] | None:
    """Return the parts of a composed objective's name, one for each kind; None for other names."""
    parts = tuple(name.split(SEPARATOR))
    return parts if len(parts) == len(STAGES) and all(parts) else None
