"""Reads the definitions of the paper's tables (`paper_tables.yaml`), with the published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from tartan.files import Plain
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.reading.read_options import given_corpora


class Column(Plain):
    """A column of a table, and which settings belong in it.

    Attributes:
        auxiliaries: kinds of all of the setting's auxiliary tasks; None for any.
        size: size of the auxiliary tasks of kind `domain`.
        weighting: name of the weighting; None for any, or none.
        without: options, and the values with which a run does not belong here.
    """

    label: str
    method: str
    auxiliaries: list[Literal["task", "domain"]] | None = None
    size: float | Literal["all"] | None = None
    weighting: str | None = None
    without: dict[str, Any] = Field(default_factory=dict)

    def holds(self, setting: Setting) -> bool:
        """Return whether the setting belongs in this column.

        One with a module of one's own does not: it is another method than the paper's.
        """
        result = setting.result
        kinds = sorted(a.kind for a in result.auxiliaries.values())
        sizes = {a.size for a in result.auxiliaries.values() if a.kind == "domain"}
        options = setting.runs[0].options
        return (
            result.method == self.method
            and not setting.variant
            and (self.auxiliaries is None or kinds == sorted(self.auxiliaries))
            and (self.size is None or sizes == {self.size})
            and (self.weighting is None or result.weighting == self.weighting)
            and all(options.get(name) != value for name, value in self.without.items())
        )


class Published(Plain):
    """A row of the paper: mean and standard deviation in percent by column, and p-values."""

    scores: dict[str, tuple[float, float]]
    p: dict[str, float] = Field(default_factory=dict)


class PaperTable(Plain):
    """A table of the paper, filled with our runs.

    Attributes:
        paper: its number in the paper.
        columns: columns by name, in order.
        encoder: name of the paper's encoder.
        encoder_names: names under which our runs use the same encoder.
        seeds: number of the paper's seeds.
        against: columns of which the best is compared with the tested ones.
        tested: columns that get a p-value.
        published: the paper's rows, by task; a run of another task does not belong here.
    """

    key: str
    paper: str
    title: str
    columns: dict[str, Column]
    encoder: str
    encoder_names: list[str]
    seeds: int
    against: list[str] = Field(default_factory=list)
    tested: list[str] = Field(default_factory=list)
    published: dict[str, Published]

    def takes(self, bench: Benchmark) -> bool:
        """Return whether the benchmark's task is one of the table's."""
        return bench.task in self.published


def paper_tables() -> list[PaperTable]:
    """Return all tables, in the paper's order."""
    path = Path(__file__).with_name("paper_tables.yaml")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # a table may have its own instead
    shared = {name: content[name] for name in ("encoder", "encoder_names", "seeds")}
    tables = content["tables"]
    return [PaperTable.model_validate(shared | table, strict=False) for table in tables]


def candidates(column: Column, settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings that belong in a cell, of which the first is shown.

    Those on the domain text that belongs to the task come before those on other text, then those
    with more seeds, then those that are better on dev; test decides nothing here.
    """

    def rank(setting: Setting) -> tuple[bool, int, float]:
        return not given_corpora(setting.runs[0]), len(setting.runs), setting.dev_mean

    return sorted(filter(column.holds, settings), key=rank, reverse=True)
