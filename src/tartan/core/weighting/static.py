"""Constant weights that the user chooses."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tartan.core.weighting.base import FixedWeighting
from tartan.errors import UserError
from tartan.settings import NonNegative, checked


class Static(FixedWeighting):
    """`alpha_i` in proportion to the given `values`, scaled to sum to 1.

    Args:
        task_names: the tasks.
        values: a weight for each task by name, `end_task` included; not negative.

    Raises:
        UserError: a task without a value, a value without a task, a negative or non-finite value,
            or values that sum to zero.
    """

    @checked
    def __init__(self, task_names: list[str], values: Mapping[str, NonNegative]) -> None:
        if set(values) != set(task_names):
            raise UserError(
                f"values must name exactly the tasks {sorted(task_names)}, "
                f"but names {sorted(values)}; "
                f"e.g. values={dict.fromkeys(task_names, 1)}, of a run "
                f"'weighting.values={{{', '.join(f'{name}: 1' for name in task_names)}}}'"
            )
        numbers = [float(values[name]) for name in task_names]
        if not 0 < sum(numbers) < math.inf:
            raise UserError(f"values must not all be zero, nor too large, got {dict(values)}")
        super().__init__(task_names, [v / sum(numbers) for v in numbers])
