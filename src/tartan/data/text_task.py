"""Reads a labelled task on text: splits, label order, and which texts are unseen in training."""

from __future__ import annotations

import hashlib
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import datasets

from tartan.data.clean_split import clean_split, same_texts
from tartan.data.columns import Columns
from tartan.data.end_task import EndTaskOfSource, Splits
from tartan.data.labelled import Example, in_order, read_labelled
from tartan.data.remarks import warn_of_texts, warn_of_truncation
from tartan.data.stratified import Assignment, HeldOut, choose_labelled, stratified_splits
from tartan.data.table.base import Table
from tartan.data.table.formats import Format
from tartan.data.table.open import open_lines
from tartan.data.tokenise import check_length, tokenise, truncation_of
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import require_text_encoder
from tartan.errors import UserError
from tartan.files import check_is_file
from tartan.settings import Checked, Count, Length, Natural

log = logging.getLogger(__name__)

SplitKind: TypeAlias = Literal["published", "clean"]
_PAIR = "text_pair"
"""The column of the second texts of pairs, where nothing says which it is."""


@dataclass(frozen=True)
class TaskFiles:
    """The tables of an end task's labelled splits; a path is read as JSONL.

    `dev` and `test` may instead be parts that are held out of the training examples.
    """

    train: Table | Path
    dev: Table | Path | HeldOut
    test: Table | Path | HeldOut


@dataclass(frozen=True)
class TextSource(Checked, ABC):
    """A labelled text task in tables of texts and labels; subclasses say where the tables are.

    Attributes:
        name: the name the result is reported under.
        metric: the metric by which a checkpoint is chosen (see `EndTask.metric`).
        max_length: longest input; longer texts are cut [tokens].
        split: `published` for the splits as they are given, or held out of one table; `clean` for
            new ones of the same sizes, with all examples of one text, and near-duplicates of it, in
            the same split.
        labelled: number of training examples that keep their labels, each label by its share; the
            texts of the others remain as unlabelled text of the task. None keeps all [examples].
        split_seed: seed of that choice, and of the choice of held-out examples.
    """

    name: str
    metric: str
    max_length: Length
    split: SplitKind = field(default="published", kw_only=True)
    labelled: Count | None = field(default=None, kw_only=True)
    split_seed: Natural = field(default=0, kw_only=True)

    prefix = "task."
    """Beginning of the options' names, for messages; a program's arguments have none."""

    @abstractmethod
    def files(self) -> TaskFiles:
        """Return the labelled files, after fetching or building them where needed."""

    def columns(self, train: Table) -> Columns:
        """Return the columns of the tables that hold texts and labels.

        Raises:
            UserError: the training table lacks a column.
        """
        return Columns()

    @property
    def label_options(self) -> dict[str, Any]:
        """What `read_labelled` is told about training rows without a label: its arguments."""
        return {}

    @abstractmethod
    def domain_file(self, size: float | None) -> Path:
        """Return a file of the task's domain text that suits `size` (None: all there is).

        Raises:
            UserError: the task has no domain text.
        """

    def load(self) -> TextTask:
        """Read the files.

        Raises:
            UserError: a file is missing or malformed (the message names the line), dev or test has
                a label that train lacks, a label is too rare for dev to be split off, or `files`
                returns something else.
        """
        files, kind = self.files(), type(self).__name__
        if not isinstance(files, TaskFiles):
            raise UserError(f"{kind}.files() returned {files!r}; it has to return TaskFiles(...)")
        given = {"train": files.train, "dev": files.dev, "test": files.test}
        held = [part for part in (files.test, files.dev) if isinstance(part, HeldOut)]
        tables = {
            split: _table(table, f"{kind}.files(): {split}")
            for split, table in given.items()
            if split == "train" or not isinstance(table, HeldOut)
        }
        train = tables["train"]
        columns = self.columns(train)
        if columns.pair is None and _PAIR in {*train.columns} - {columns.text, columns.label}:
            log.warning(
                "task %s: %s has a %s %r that is not read, so texts are not pairs; "
                "%stext_pair=%s makes them pairs (in a class of your own columns())",
                self.name, train.source, train.entry, _PAIR, self.prefix, _PAIR,
            )  # fmt: skip
        options = {"train": self.label_options}
        read = {s: read_labelled(own, columns, **options.get(s, {})) for s, own in tables.items()}
        unlabelled, read["train"] = _without_labels(self.name, train.source, read["train"])
        names = [example.label for example in read["train"]]
        splits = stratified_splits(names, held, train.source, self.prefix)
        assigned = list(zip(splits, read["train"], strict=True))
        for split in ("train", *(part.split for part in held)):
            read[split] = [example for own, example in assigned if own == split]
        read = {split: read[split] for split in given}
        of_one_table = len(tables) == 1
        if self.split != "published":
            if held and not of_one_table:
                raise UserError(
                    f"{self.prefix}split=clean splits one table, or those of train, dev and test; "
                    f"name files for both dev and test ({self.prefix}dev=FILE "
                    f"{self.prefix}test=FILE), or for neither"
                )
            read = _split_anew(self, read)
            assigned = [(split, one) for split, own in read.items() for one in own]
            assigned.sort(key=lambda pair: pair[1].number)
        labels = in_order(example.label for example in read["train"])
        if len(labels) < 2:
            raise UserError(
                f"{train.source}: training needs at least two labels, found {list(labels)}"
            )
        trained_on = {example.content for example in (*read["train"], *unlabelled)}
        if self.labelled is not None:
            names = [example.label for example in read["train"]]
            kept = choose_labelled(names, self.labelled, self.split_seed, train.source)
            unlabelled += [
                one for one, is_kept in zip(read["train"], kept, strict=True) if not is_kept
            ]
            read["train"] = list(compress(read["train"], kept))
        for split, examples in read.items():
            unknown = sorted({example.label for example in examples} - set(labels))
            if unknown:
                raise UserError(
                    f"{tables.get(split, train).source}: labels {unknown} do not occur in "
                    f"{train.source}; add examples of them there, or remove their rows here"
                )
        contents = {s: [(one.content, one.label) for one in own] for s, own in read.items()}
        warn_of_texts(self.name, contents, {one.content for one in unlabelled})
        numbered = of_one_table or self.split == "published"
        parts = [part for part in held if part.share]
        return TextTask(
            source=self,
            labels=labels,
            **{s: _indexed(own, labels, trained_on, numbered=numbered) for s, own in read.items()},
            fingerprints=_fingerprints(self, tables, columns, held),
            columns=columns,
            assignment=Assignment(train.source, train.unit, parts, assigned) if parts else None,
            unlabelled=_indexed(unlabelled, [*labels, ""], trained_on) if unlabelled else None,
        )


@dataclass(frozen=True)
class LabelledTexts:
    """One split: texts, their labels as indices, and whether each text is absent from train.

    `pairs` are the second texts where the task has pairs of them. `numbers` are the texts' lines or
    rows in the one file that a split was read from; None where it is of several.
    """

    texts: Sequence[str]
    labels: Sequence[int]
    unseen: Sequence[bool]
    pairs: Sequence[str] | None = None
    numbers: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def whole(self) -> list[str]:
        """Each example's text; of pairs, both texts as one."""
        if self.pairs is None:
            return list(self.texts)
        both = zip(self.texts, self.pairs, strict=True)
        return [f"{first}\n{second}" for first, second in both]

    @property
    def parts(self) -> list[tuple[str, ...]]:
        """Each example's text, or both texts of a pair."""
        if self.pairs is None:
            return [(text,) for text in self.texts]
        return list(zip(self.texts, self.pairs, strict=True))

    def rows(self, *, labelled: bool = True) -> datasets.Dataset:
        """Return rows with `text` (and `text_pair`), and if `labelled`, `label` and `unseen`."""
        columns: dict[str, list[Any]] = {"text": list(self.texts)}
        if self.pairs is not None:
            columns["text_pair"] = list(self.pairs)
        if labelled:
            columns |= {"label": list(self.labels), "unseen": list(self.unseen)}
        return datasets.Dataset.from_dict(columns)


@dataclass(frozen=True)
class TextTask(EndTaskOfSource):
    """A labelled task on text, read and checked (see `EndTask`).

    Attributes:
        source: the source that it was read from.
        labels: label names in index order (sorted, by value if they are numbers).
        train: training split.
        dev: validation split.
        test: test split.
        fingerprints: SHA-256 of each split's file, or how it was split off another.
        columns: the columns that were read.
        assignment: which rows became which split, where a split was held out; else None.
        unlabelled: training texts without a label, and those whose labels `source.labelled` leaves
            out; None if there are none.
    """

    source: TextSource
    labels: tuple[str, ...]
    train: LabelledTexts
    dev: LabelledTexts
    test: LabelledTexts
    fingerprints: dict[str, str]
    columns: Columns
    assignment: Assignment | None = None
    unlabelled: LabelledTexts | None = None

    @property
    def max_length(self) -> int:
        """Maximum length of an input [tokens]."""
        return self.source.max_length

    @property
    def evaluated_texts(self) -> list[str]:
        """All texts of dev and test, both texts of each pair."""
        splits = (self.dev, self.test)
        return [text for own in splits for text in (*own.texts, *(own.pairs or ()))]

    @property
    def label_counts(self) -> tuple[int, ...]:
        counts = Counter(self.train.labels)
        return tuple(counts[index] for index in range(len(self.labels)))

    @property
    def notes(self) -> dict[str, Any]:
        columns = self.columns
        own = {"columns": {"text": columns.text, "label": columns.label, "text_pair": columns.pair}}
        return own if self.assignment is None else {**own, "split": self.assignment.summary()}

    @property
    def own_texts(self) -> datasets.Dataset:
        """Return all training texts, labelled or not, as rows with `text` (and `text_pair`)."""
        own = self.train.rows(labelled=False)
        if self.unlabelled is None:
            return own
        return datasets.concatenate_datasets([own, self.unlabelled.rows(labelled=False)])

    def digest(self) -> str:
        """Return a checksum of all splits together."""
        return _digest(":".join(self.fingerprints.values()))

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return rows with `input_ids`, `label` and `unseen`, tokenised or from the cache.

        Raises:
            UserError: the encoder does not read text, or not inputs of this length.
        """
        text_encoder = require_text_encoder(encoder, f"task {self.name}")
        check_length(f"{self.source.prefix}max_length", self.max_length, text_encoder)
        # A split's label indices and unseen marks depend on train too.
        together = self.digest()

        def rows(split: str, texts: LabelledTexts) -> datasets.Dataset:
            return tokenise(
                texts.rows(),
                f"{split}:{together}",
                text_encoder.tokenizer,
                self.max_length,
                cache_dir,
                keep_blank=True,
                token_types=text_encoder.uses_token_types,
            )

        given = {"train": self.train, "dev": self.dev, "test": self.test}
        splits = {split: rows(split, texts) for split, texts in given.items() if len(texts)}
        cuts = {split: truncation_of(tokenised) for split, tokenised in splits.items()}
        warn_of_truncation(self.name, f"{self.source.prefix}max_length={self.max_length}", cuts)
        none = splits["dev"].select([])  # with its columns, for a task without a test split
        return Splits(**{"test": none, **splits})


def _split_anew(source: TextSource, read: dict[str, list[Example]]) -> dict[str, list[Example]]:
    """Return the examples of all splits in new splits of the same sizes that share no text.

    Raises:
        UserError: there are no such splits.
    """
    examples = [example for own in read.values() for example in own]
    groups = same_texts([f"{example.text} {example.pair or ''}" for example in examples])
    sizes = {split: len(own) for split, own in read.items()}
    labels = [example.label for example in examples]
    found = clean_split(groups.tolist(), labels, sizes, source.split_seed, source.name)
    pairs = list(zip(found, examples, strict=True))
    return {split: [example for own, example in pairs if own == split] for split in read}


def _without_labels(
    name: str, source: str, examples: Sequence[Example]
) -> tuple[list[Example], list[Example]]:
    """Return the examples without a label, and the others.

    Raises:
        UserError: all are without one.
    """
    without = [example for example in examples if not example.label]
    if len(without) == len(examples):
        raise UserError(f"{source} holds no labelled examples")
    if without:
        log.warning(
            "task %s: %s: %s of %s rows have no label; their texts are unlabelled text of the task",
            name, source, f"{len(without):,}", f"{len(examples):,}",
        )  # fmt: skip
    return without, [example for example in examples if example.label]


def _table(given: object, what: str) -> Table:
    """Return a table that a source gives, which may be a class of somebody's own.

    Raises:
        UserError: it is neither a table nor the path of a file.
    """
    if isinstance(given, Table):
        return given
    if not isinstance(given, Path):
        raise UserError(
            f"{what}={given!r} is a {type(given).__name__}; give a pathlib.Path (of JSONL) or a "
            "Table (open_table of tartan.data.table.open)"
        )
    check_is_file(given)
    return open_lines(given, Format("jsonl"))


def _fingerprints(
    source: TextSource, tables: Mapping[str, Table], columns: Columns, held: Sequence[HeldOut]
) -> dict[str, str]:
    """Return a checksum of each split's file and columns, or how it was made of other splits."""
    found = {split: table.fingerprint for split, table in tables.items()}
    if columns != Columns():
        found = {split: _digest(f"{own}:{columns}") for split, own in found.items()}
    found |= {part.split: f"{part} of {found['train']}" for part in held}
    found = {split: found[split] for split in ("train", "dev", "test")}
    if source.split != "published":
        kind = f"{source.split}, seed {source.split_seed}, of {_digest(':'.join(found.values()))}"
        found = {split: f"{split}, {kind}" for split in found}
    if source.labelled is not None:
        found["train"] += f", {source.labelled} labelled, seed {source.split_seed}"
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _indexed(
    examples: Sequence[Example],
    labels: Sequence[str],
    trained_on: set[str | tuple[str, str]],
    *,
    numbered: bool = False,
) -> LabelledTexts:
    index = {label: position for position, label in enumerate(labels)}
    pairs = [example.pair for example in examples if example.pair is not None]
    return LabelledTexts(
        texts=[example.text for example in examples],
        labels=[index[example.label] for example in examples],
        unseen=[example.content not in trained_on for example in examples],
        pairs=pairs or None,
        numbers=[example.number for example in examples] if numbered else None,
    )
