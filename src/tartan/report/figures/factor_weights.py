"""Draws the weights of the factors of composed objectives (AANG), as means over seeds."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tartan.core.task_names import JOINT, STAGES
from tartan.errors import UserError
from tartan.figures.factor_weights import TWO_WAY, factor_weights_figure, shares_of
from tartan.figures.style import plain
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.reading.run import Run
from tartan.report.reading.steps import read_log

_FILE = "factors.csv"
_COLUMNS = {"stage": str, "step": float, "factor": str, "logit": float}


def draw_factor_weights(bench: Benchmark, remarks: list[str]) -> Figure | None:
    """Draw the setting with most seeds, then best on dev; None if no factors were learned.

    Args:
        bench: the benchmark.
        remarks: gets a line for each run whose factors cannot be read.
    """
    found: list[tuple[Setting, list[pd.DataFrame]]] = []
    for setting in bench.settings:
        own = []
        for run in setting.runs:
            if not (run.folder / _FILE).exists():
                continue
            try:
                own.append(_shares(run))
            except UserError as error:
                remarks.append(f"{run.name}: no factors drawn ({error})")
        if own:
            found.append((setting, own))
    if not found:
        return None
    setting, shares = max(found, key=lambda pair: (len(pair[1]), pair[0].dev_mean))
    return factor_weights_figure(shares, plain(f"{setting.label} on {bench.label}", 90))


def _shares(run: Run) -> pd.DataFrame:
    """Return `shares_of` the last stage that learned factors.

    Raises:
        UserError: the file is damaged or of another form.
    """
    table = read_log(run.folder / _FILE, _COLUMNS)
    if table.empty or table.isna().any(axis=None):
        raise UserError(f"{_FILE}: it holds no factors, or lacks some")
    table = table[table["stage"] == table["stage"].iloc[-1]]
    table = table.drop_duplicates(["step", "factor"], keep="last")
    shares = shares_of(table)
    complete = len(table) == table["factor"].nunique() * table["step"].nunique()
    known = set(shares["stage"]) == {*STAGES, JOINT, TWO_WAY}
    if not complete or not known or shares["share"].isna().any():
        raise UserError(f"{_FILE}: its factors are not those of composed objectives")
    return shares
