"""All kinds of end task by name."""

from collections.abc import Mapping

from tartan.data.multi_label import MultiLabel
from tartan.data.regression import RegressionKind
from tartan.data.task_kind import TaskKind

KINDS: Mapping[str, TaskKind] = {
    kind.name: kind for kind in (TaskKind(), MultiLabel(), RegressionKind())
}
"""The kinds by the values of `task.kind`."""


def kind_of(thing: object) -> TaskKind:
    """Return the kind of a task's source, or the one that an objective trains."""
    return KINDS[getattr(thing, "kind", TaskKind.name)]


def kind_of_problem(problem_type: str | None) -> TaskKind:
    """Return the kind that Transformers calls so; None is that of single labels."""
    found = [kind for kind in KINDS.values() if kind.problem_type == problem_type]
    return found[0] if found else KINDS[TaskKind.name]
