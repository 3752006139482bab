"""Reads an end task from the user's own files, or from a data set on the Hugging Face Hub."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from tartan.data.labelled import Columns, choose_columns
from tartan.data.multi_label import MultiLabel
from tartan.data.table import Quoting, Table, joined, open_hub, open_table, selected
from tartan.data.text_task import SPLITS, TextSource
from tartan.errors import UserError
from tartan.settings import Below1, Part

log = logging.getLogger(__name__)

EmptyLabel: TypeAlias = Literal["refused", "unlabelled"]
KindName: TypeAlias = Literal["single_label", "multi_label", "regression"]
_USUAL = {"train": ("train",), "dev": ("validation", "dev", "val", "valid"), "test": ("test",)}
"""Names that data sets give to their splits."""
_SPLIT = "split"  # name of a column that says which split a row belongs to


@dataclass(frozen=True)
class FileTask(TextSource):
    """Texts and labels in tables: CSV, TSV, JSONL, JSON (plain, .gz or .zst), Parquet or .xlsx.

    With `hub`, `train`, `dev` and `test` name its splits instead of files, and those that are not
    named are found by their usual names. Where a single table has a column `split` that says
    `train`, `validation` or `test` in every row, its splits are these.

    Attributes:
        train: training examples, in a file or several.
        test: test examples; None splits them off the training ones.
        dev: validation examples; None splits them off the training ones.
        test_share: share of the training examples that becomes test; labels keep their shares. 0
            leaves the run without a test split, and so without scores on one.
        dev_share: share of the training examples that becomes dev.
        empty_label: `unlabelled` takes the texts of training rows without a label as unlabelled
            text of the task; otherwise such a row is an error.
        text: the column of texts; None finds it.
        label: the column of labels; None finds it. Of several labels a text, columns of 0 and 1.
        kind: `multi_label` where a text has several labels, or none; `regression` for a number.
        separator: what is between several labels in a column of text.
        text_pair: the column of second texts, which makes pairs of them; None for single texts.
        quoting: `none` where double quotes in CSV and TSV are ordinary characters.
        hub: a data set on the Hugging Face Hub, or a folder that `datasets` reads.
        hub_config: its configuration.
        domain: unlabelled text of the domain; None where there is none.
        cache_dir: folder for a data set from the Hub.
    """

    train: str | Sequence[str] | None = None
    test: str | None = None
    dev: str | None = None
    test_share: Below1 = 0.2
    dev_share: Part = 0.2
    empty_label: EmptyLabel = "refused"
    text: str | None = None
    label: str | Sequence[str] | None = None
    text_pair: str | None = None
    kind: KindName = "single_label"
    separator: str | None = None
    quoting: Quoting = "standard"
    hub: str | None = None
    hub_config: str | None = None
    domain: str | None = None
    cache_dir: str = "~/.cache/tartan"

    def tables(self) -> Mapping[str, Table]:
        """Return the tables that are named, or found on the Hub, or by a column `split`."""
        tables = self.named_tables() if self.hub is None else self._hub_tables(self.hub)
        if "train" not in tables:
            raise UserError("task.train names no file: task.train=FILE (CSV, JSONL, Parquet, ...)")
        named = [c for c in tables["train"].columns if c.strip().lower() == _SPLIT]
        if set(tables) == {"train"} and named:
            return self._by_column(tables["train"], _SPLIT if _SPLIT in named else named[0])
        return tables

    def named_tables(self) -> dict[str, Table]:
        tables: dict[str, Table] = {}
        for split in SPLITS:
            named = getattr(self, split) or []
            paths = [named] if isinstance(named, str) else named
            several = [open_table(Path(path), quoting=self.quoting) for path in paths]
            if several:
                tables[split] = several[0] if len(several) == 1 else joined(several)
        return tables

    def columns(self, train: Table) -> Columns:
        """Return the columns that are named, and the others as found, which is logged."""
        if not train.columns:
            raise UserError(f"{train.source} holds no examples")
        columns = choose_columns(train, self.text, self.label, self.text_pair)
        several = self.separator is not None or isinstance(columns.label, tuple)
        if several and self.kind != MultiLabel.name:
            raise UserError("task.separator and lists of columns are for task.kind=multi_label")
        columns = replace(columns, separator=self.separator)
        if (columns.text, columns.label) != (self.text or "text", self.label or "label"):
            read = (self.name, columns.text, columns.label)
            log.warning("task %s: texts are read from column %r, labels from %r", *read)
        return columns

    def domain_file(self, size: float | None) -> Path:
        if self.domain is None:
            raise UserError(f"task {self.name} has no domain text; give it: task.domain=FILE")
        return Path(self.domain)

    def _by_column(self, train: Table, column: str) -> Mapping[str, Table]:
        """Return the splits that a table's column names; the whole table if it names no train."""
        known = {name: split for split, names in _USUAL.items() for name in names}
        values: dict[str, list[str]] = {}
        for value in sorted({str(row.values.get(column)) for row in train.rows()}):
            values.setdefault(known.get(value.strip().lower(), ""), []).append(value)
        if "train" not in values:
            return {"train": train}
        if "" in values:
            raise UserError(f"{train.source}: the column {column!r} names no split: {values['']}")
        which = sorted(values)
        log.warning("task %s: the column %r says which rows are %s", self.name, column, which)
        return {split: selected(train, column, names) for split, names in values.items()}

    def _hub_tables(self, name: str) -> Mapping[str, Table]:
        """Return the splits of a data set on the Hub that are named, or have a usual name."""
        splits = open_hub(name, self.hub_config, Path(self.cache_dir).expanduser())
        tables: dict[str, Table] = {}
        for split, usual in _USUAL.items():
            named = getattr(self, split)
            found = [splits[one] for one in ([named] if named else usual) if one in splits]
            if not found and (named or split == "train"):
                raise UserError(f"task.{split}={named or 'train'}: {name} has only {list(splits)}")
            if found and (named or not found[0].unlabelled):
                tables[split] = found[0]
        return tables
