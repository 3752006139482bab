"""Looks up the paper's scores for the tasks of the study."""

from __future__ import annotations

from tartan.report.paper import paper_tables

_LABELS = {"acl_arc": 1688, "scierc": 3219, "chemprot": 4169, "hyperpartisan": 516}
"""Number of training examples of the paper's tasks."""
_TABLE = "table_1"
"""The table of the paper whose auxiliary task is the task's own text."""
_COLUMNS = {"finetune": "finetune", "tapt": "released", "mt_tartan": "mt", "meta_tartan": "meta"}
"""Columns of that table by method; its TAPT starts from the released encoder."""


def published_score(task: str, labelled: int, method: str) -> str | None:
    """Return the paper's score with the task's own text; None where it has none.

    Args:
        task: the task's name.
        labelled: number of labelled training examples, which have to be as many as the paper's.
        method: the method's name.
    """
    if labelled != _LABELS.get(task) or method not in _COLUMNS:
        return None
    (table,) = (table for table in paper_tables() if table.key == _TABLE)
    if task not in table.published:
        return None
    mean, deviation = table.published[task].scores[_COLUMNS[method]]
    return f"{mean:.2f} ± {deviation:.2f}"
