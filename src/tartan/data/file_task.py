"""Reads an end task from the user's own files, or from a data set on the Hugging Face Hub."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tartan.data.columns import Columns, choose_columns
from tartan.data.stratified import HeldOut
from tartan.data.table.arrow import ArrowTable
from tartan.data.table.base import Table
from tartan.data.table.open import open_hub, open_table
from tartan.data.text_task import TaskFiles, TextSource
from tartan.errors import UserError
from tartan.settings import Below1, Part

log = logging.getLogger(__name__)

EmptyLabel: TypeAlias = Literal["refused", "unlabelled"]
_DEV_SPLITS = ("validation", "dev", "val")
"""Names that data sets on the Hub give to their validation split."""


@dataclass(frozen=True)
class FileTask(TextSource):
    """Texts and labels in tables: CSV, TSV, JSONL, JSON, Parquet or Arrow, also with .gz or .zst.

    With `hub`, `train`, `dev` and `test` name its splits instead of files, and those that are not
    named are found by their usual names.

    Attributes:
        train: training examples.
        test: test examples; None splits them off the training ones.
        dev: validation examples; None splits them off the training ones.
        test_share: share of the training examples that becomes test; labels keep their shares. 0
            leaves the run without a test split, and so without scores on one.
        dev_share: share of the training examples that becomes dev.
        empty_label: `unlabelled` takes the texts of training rows without a label as unlabelled
            text of the task; otherwise such a row is an error.
        text: the column of texts; None finds it.
        label: the column of labels; None finds it.
        text_pair: the column of second texts, which makes pairs of them; None for single texts.
        hub: a data set on the Hugging Face Hub, or a folder that `datasets` reads.
        hub_config: its configuration.
        domain: unlabelled text of the domain; None where there is none.
        cache_dir: folder for a data set from the Hub.

    Raises:
        UserError: there is a `hub_config` without `hub`.
    """

    train: str | None = None
    test: str | None = None
    dev: str | None = None
    test_share: Below1 = 0.2
    dev_share: Part = 0.2
    empty_label: EmptyLabel = "refused"
    text: str | None = None
    label: str | None = None
    text_pair: str | None = None
    hub: str | None = None
    hub_config: str | None = None
    domain: str | None = None
    cache_dir: str = "~/.cache/tartan"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hub_config is not None and self.hub is None:
            raise UserError(
                f"task.hub_config={self.hub_config} is for a data set on the Hub; give "
                "task.hub=NAME too"
            )

    def files(self) -> TaskFiles:
        """Return the tables as named; dev and test held out where they are not.

        Raises:
            UserError: no training file is named, or an ending is unknown.
        """
        if self.hub is not None:
            return self._hub_splits(self.hub)
        train = self.table("train")
        if train is None:
            raise UserError(
                "task.train names no file; give your labelled examples: task.train=FILE (CSV, TSV, "
                "JSONL or Parquet), or task.hub=NAME"
            )
        self._warn_of_equal_files()
        dev, test = self.table("dev"), self.table("test")
        return TaskFiles(train, dev or self._held_out("dev"), test or self._held_out("test"))

    def table(self, split: str) -> Table | None:
        """Return the table of the file that is named for a split; None where none is named."""
        path = getattr(self, split)
        return None if path is None else open_table(Path(path))

    def columns(self, train: Table) -> Columns:
        """Return the columns to read: those that are named, and the others as found.

        Logs which columns were found, unless they are `text` and `label`.

        Raises:
            UserError: the table is empty, or a column does not exist or cannot be found.
        """
        if not train.columns:
            raise UserError(f"{train.source} holds no examples")
        columns = choose_columns(train, self.text, self.label, self.text_pair, self.prefix)
        named = Columns(self.text or "text", self.label or "label", self.text_pair)
        said = [] if train.remark is None else [train.remark]
        if columns != named:
            entry, option = train.entry.upper(), self.prefix
            said.append(
                f"texts are read from {train.entry} {columns.text!r}, labels from "
                f"{columns.label!r} (others: {option}text={entry} {option}label={entry})"
            )
        if said:
            log.warning("task %s: %s: %s", self.name, train.source, "; ".join(said))
        return columns

    @property
    def label_options(self) -> dict[str, Any]:
        option = f"{self.prefix}empty_label"
        return {"empty_labels": self.empty_label == "unlabelled", "option": option}

    def domain_file(self, size: float | None) -> Path:
        """Return the user's file or folder of domain text, the same for any size.

        Raises:
            UserError: the task has no domain text.
        """
        if self.domain is None:
            raise UserError(
                f"task {self.name} has no domain text; "
                "give it: task.domain=FILE, or use auxiliary=tapt"
            )
        return Path(self.domain)

    def own_files(self) -> list[Path]:
        """Return the labelled files that the options name; none for a data set on the Hub."""
        named = [] if self.hub is not None else [self.train, self.dev, self.test]
        return [Path(path).expanduser() for path in named if path is not None]

    def _warn_of_equal_files(self) -> None:
        """Warn where two splits are the same file, as in a first trial of a program."""
        named = {name: getattr(self, name) for name in ("train", "dev", "test")}
        paths = {name: Path(path).expanduser().resolve() for name, path in named.items() if path}
        for one, other in combinations(paths, 2):
            if paths[one] == paths[other]:
                log.warning(
                    "task %s: %s%s and %s%s name the same file, so that scores say nothing about "
                    "other texts; without %s%s, a part of the rows is held out",
                    self.name, self.prefix, one, self.prefix, other, self.prefix, other,
                )  # fmt: skip

    def _held_out(self, split: str) -> HeldOut:
        share = self.dev_share if split == "dev" else self.test_share
        return HeldOut(share, self.split_seed, split)

    def _hub_splits(self, name: str) -> TaskFiles:
        splits = open_hub(name, self.hub_config, Path(self.cache_dir).expanduser())
        train = self._hub_split(splits, "train", ("train",))
        if train is None:
            raise UserError(
                f"task.hub={name} has no split 'train'; name one: task.train=SPLIT (there are "
                f"{', '.join(splits)})"
            )
        dev = self._hub_split(splits, "dev", _DEV_SPLITS)
        test = self._hub_split(splits, "test", ("test",))
        return TaskFiles(train, dev or self._held_out("dev"), test or self._held_out("test"))

    def _hub_split(
        self, splits: Mapping[str, ArrowTable], option: str, usual: tuple[str, ...]
    ) -> Table | None:
        named = getattr(self, option)
        if named is not None and named not in splits:
            raise UserError(
                f"task.{option}={named}: task.hub={self.hub} has only the splits "
                f"{', '.join(splits)}"
            )
        wanted = usual if named is None else (named,)
        found = next((splits[split] for split in wanted if split in splits), None)
        if found is not None and named is None and found.unlabelled:
            log.warning("task %s: %s has no labels and is not used", self.name, found.source)
            return None
        return found
