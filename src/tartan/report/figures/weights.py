"""Computes task weights over steps, as mean and deviation over a setting's seeds."""

from __future__ import annotations

import pandas as pd

from tartan.errors import UserError
from tartan.figures.task_weights import mean_weights
from tartan.report.reading.grouping import Setting
from tartan.report.reading.steps import read_steps


def weights_of(setting: Setting, remarks: list[str]) -> pd.DataFrame | None:
    """Return `mean_weights` of the last stage that weighted tasks; None if there is none.

    Args:
        setting: the setting.
        remarks: gets a line for each run whose step log cannot be read.
    """
    tables = []
    for run in setting.runs:
        mixed = [stage.name for stage in run.result.stages if stage.final_task_weights]
        if not mixed:
            continue
        try:
            table = read_steps(run.folder)
        except UserError as error:
            remarks.append(f"{run.name}: no task weights drawn ({error})")
            continue
        tables.append(table[(table["stage"] == mixed[-1]) & table["weight"].notna()])
    if not tables or all(table.empty for table in tables):
        return None
    return mean_weights(tables)
