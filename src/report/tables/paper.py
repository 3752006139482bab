"""The paper's tables (`paper_tables.yaml`): whose runs fill them, and the published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from src.files.plain import Plain
from src.report.reading.settings import Benchmark, Setting


class Column(Plain):
    """A column of a table: which settings belong there.

    Attributes:
        auxiliaries: kinds of the auxiliary tasks, all of them; None: any.
        size: of those of kind `domain`.
        weighting: how the tasks were mixed; None: any, or not at all.
        without: options of the config and the values that rule a run out.
    """

    label: str
    method: str
    auxiliaries: list[Literal["task", "domain"]] | None = None
    size: float | Literal["all"] | None = None
    weighting: str | None = None
    without: dict[str, Any] = Field(default_factory=dict)

    def holds(self, setting: Setting) -> bool:
        """Whether the setting's runs belong in this column."""
        result = setting.result
        kinds = sorted(a.kind for a in result.auxiliaries.values())
        sizes = {a.size for a in result.auxiliaries.values() if a.kind == "domain"}
        options = setting.runs[0].options
        return (
            result.method == self.method
            and (self.auxiliaries is None or kinds == sorted(self.auxiliaries))
            and (self.size is None or sizes == {self.size})
            and (self.weighting is None or result.weighting == self.weighting)
            and all(options.get(name) != value for name, value in self.without.items())
        )


class Published(Plain):
    """A row of the paper's: mean and standard deviation in percent by column, and p-values."""

    scores: dict[str, tuple[float, float]]
    p: dict[str, float] = Field(default_factory=dict)


class PaperTable(Plain):
    """A table of the paper.

    Attributes:
        paper: its number there.
        kind: of the data.
        columns: by name, in order.
        against: the columns whose best the tested ones are compared with.
        tested: columns that get a p-value.
        tasks: the only tasks it is about; empty: any.
        published: by task.
        encoder: the paper's.
        encoder_names: what runs with the same encoder call it.
        seeds: the paper's.
    """

    key: str
    paper: str
    title: str
    kind: Literal["text", "images"]
    columns: dict[str, Column]
    against: list[str] = Field(default_factory=list)
    tested: list[str] = Field(default_factory=list)
    tasks: list[str] = Field(default_factory=list)
    published: dict[str, Published] = Field(default_factory=dict)
    encoder: str = ""
    encoder_names: list[str] = Field(default_factory=list)
    seeds: int = 0

    def takes(self, bench: Benchmark) -> bool:
        """Whether the bench's task may be a row."""
        kind = "text" if bench.runs[0].result.is_text else "images"
        return kind == self.kind and (not self.tasks or bench.task in self.tasks)


class _File(Plain):
    encoder: str
    encoder_names: list[str]
    seeds: int
    tables: list[PaperTable] = Field(min_length=1)


@dataclass(frozen=True)
class Candidate:
    """The setting shown in a cell, and how many others could have been."""

    setting: Setting
    others: int


def paper_tables() -> list[PaperTable]:
    """All of them, in the paper's order."""
    path = Path(__file__).with_name("paper_tables.yaml")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    file = _File.model_validate(content, strict=False)
    filled = {name: getattr(file, name) for name in ("encoder", "encoder_names", "seeds")}
    return [
        table.model_copy(update={k: v for k, v in filled.items() if not getattr(table, k)})
        for table in file.tables
    ]


def candidate(column: Column, settings: Sequence[Setting]) -> Candidate | None:
    """The setting for a cell: of those that belong there the one with most seeds, then best on dev.

    Test decides nothing here.
    """
    fitting = [setting for setting in settings if column.holds(setting)]
    if not fitting:
        return None
    best = max(fitting, key=lambda setting: (len(setting.runs), setting.dev_mean))
    return Candidate(best, len(fitting) - 1)
