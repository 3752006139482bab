"""Reads a labelled task on text: tables, columns, labelled examples, splits, tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import datasets

from tartan.data.end_task import EndTask, Splits
from tartan.data.kinds import KINDS
from tartan.data.labelled import Columns, Example, in_order, read_labelled
from tartan.data.overlap import same_texts
from tartan.data.table import Table
from tartan.data.task_kind import TaskKind
from tartan.data.tokenise import check_length, tokenise
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import require_text_encoder
from tartan.errors import UserError
from tartan.files import digest_of
from tartan.settings import Checked, Count, Length, Natural

SPLITS = ("train", "dev", "test")
SplitKind: TypeAlias = Literal["published", "clean"]


@dataclass(frozen=True)
class TextSource(Checked, ABC):
    """A labelled text task in tables of texts and labels; subclasses say where the tables are.

    Attributes:
        name: the name the result is reported under.
        metric: the metric by which a checkpoint is chosen (see `EndTask.source`).
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

    empty_label = "refused"
    """`unlabelled` if training rows without a label are unlabelled texts of the task."""
    dev_share, test_share = 0.2, 0.2
    """Shares of train that become dev and test where these have no table."""
    kind = TaskKind.name
    """The kind of labels (see `TaskKind`)."""

    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """Return the table of train, and those of dev and test where these are not held out."""

    def columns(self, train: Table) -> Columns:
        """Return the columns of the tables that hold texts and labels."""
        return Columns()

    @abstractmethod
    def domain_file(self, size: float | None) -> Path:
        """Return a file of the task's domain text that suits `size` (None: all there is)."""

    def load(self) -> TextTask:
        tables, kind = self.tables(), KINDS[self.kind]
        train, columns = tables["train"], self.columns(tables["train"])
        bare = {"train"} if self.empty_label == "unlabelled" else set()
        read = {
            s: read_labelled(t, columns, kind.label, empty_labels=s in bare)
            for s, t in tables.items()
        }
        unlabelled = [example for example in read["train"] if example.label is None]
        read["train"] = [example for example in read["train"] if example.label is not None]
        shares = {"test": self.test_share, "dev": self.dev_share}
        shares = {split: share for split, share in shares.items() if split not in read}
        assigned = self._assigned(read, shares, train.source)
        splits = {s: [example for name, example in assigned if name == s] for s in SPLITS}
        labels = in_order(chain(*(kind.names(example.label) for example in splits["train"])))
        if len(labels) < kind.least_labels:
            raise UserError(f"{train.source}: training needs at least two labels, found {labels}")
        for split, examples in splits.items():
            if unknown := set(chain(*(kind.names(one.label) for one in examples))) - set(labels):
                own = tables.get(split, train).source
                raise UserError(f"{own}: labels {sorted(unknown)} do not occur in {train.source}")
        trained_on = {example.content for example in (*splits["train"], *unlabelled)}
        if self.labelled is not None:
            names = [example.label for example in splits["train"]]
            kept = kind.choose(names, self.labelled, self.split_seed, train.source)
            unlabelled += compress(splits["train"], [not one for one in kept])
            splits["train"] = list(compress(splits["train"], kept))
        numbered = len(tables) == 1 or self.split == "published"
        named = {"text": columns.text, "label": columns.label, "text_pair": columns.pair}
        named |= {} if columns.separator is None else {"separator": columns.separator}
        index = {label: position for position, label in enumerate(labels)}

        def coded(examples: Sequence[Example]) -> LabelledTexts:
            codes = [kind.code(example.label, index) for example in examples]
            return _labelled_texts(examples, codes, trained_on, numbered)

        rows = [(s, example) for s, example in assigned if s == "train" or s not in tables]
        return TextTask(
            source=self,
            labels=labels,
            **{s: coded(own) for s, own in splits.items()},
            fingerprints=self._fingerprints(tables, columns, shares),
            notes={"columns": named, **({} if kind.one_label else {"kind": kind.name})},
            rows=sorted(rows, key=lambda row: row[1].number) if any(shares.values()) else [],
            unit=train.unit,
            unlabelled=_labelled_texts(unlabelled, [], trained_on) if unlabelled else None,
        )

    def _assigned(
        self, read: Mapping[str, Sequence[Example]], shares: Mapping[str, float], source: str
    ) -> list[tuple[str, Example]]:
        """Return all examples with their splits, those of train's table in its order."""
        if not read["train"]:
            raise UserError(f"{source} holds no labelled examples")
        labels, kind = [example.label for example in read["train"]], KINDS[self.kind]
        names = kind.split(labels, shares, self.split_seed, source)
        assigned = list(zip(names, read["train"], strict=True))
        assigned += [(s, one) for s in SPLITS[1:] if s in read for one in read[s]]
        if self.split == "published":
            return assigned
        if len(shares) == 1:
            raise UserError("task.split=clean splits one table, or those of train, dev and test")
        assigned.sort(key=lambda row: SPLITS.index(row[0]))
        sizes = Counter(split for split, _ in assigned)
        examples = [example for _, example in assigned]
        groups = same_texts([f"{one.text} {one.pair or ''}" for one in examples]).tolist()
        labels = [one.label for one in examples]
        names = kind.clean_split(groups, labels, sizes, self.split_seed, self.name)
        return list(zip(names, examples, strict=True))

    def _fingerprints(
        self, tables: Mapping[str, Table], columns: Columns, shares: Mapping[str, float]
    ) -> dict[str, str]:
        """Return a checksum of each split's table and columns, or how it was made of others."""
        prints = {split: table.fingerprint for split, table in tables.items()}
        kind = "" if self.kind == TaskKind.name else f":{self.kind}:{columns.separator!r}"
        if columns != Columns() or kind:
            prints = {split: digest_of(f"{own}:{columns}{kind}") for split, own in prints.items()}
        for split, share in shares.items():
            how = f"HeldOut(share={share}, seed={self.split_seed}, split={split!r})"
            prints[split] = f"{how} of {prints['train']}"
        prints = {split: prints[split] for split in SPLITS}
        if self.split != "published":
            how = f"{self.split}, seed {self.split_seed}, of {digest_of(':'.join(prints.values()))}"
            prints = {split: f"{split}, {how}" for split in SPLITS}
        if self.labelled is not None:
            prints["train"] += f", {self.labelled} labelled, seed {self.split_seed}"
        return prints


@dataclass(frozen=True)
class LabelledTexts:
    """One split: texts, their labels' codes, and whether each text is absent from train."""

    texts: Sequence[str]
    labels: Sequence[Any]
    unseen: Sequence[bool]
    pairs: Sequence[str] | None = None  # the second texts of pairs
    numbers: Sequence[int] | None = None  # lines or rows in the one file that the split is from

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def whole(self) -> list[str]:
        """Each example's text; of pairs, both texts as one."""
        if self.pairs is None:
            return list(self.texts)
        return ["\n".join(pair) for pair in zip(self.texts, self.pairs, strict=True)]

    def rows(self, *, labelled: bool = True) -> datasets.Dataset:
        """Return rows with `text` (and `text_pair`), and if `labelled`, `label` and `unseen`."""
        columns: dict[str, list[Any]] = {"text": list(self.texts)}
        if self.pairs is not None:
            columns["text_pair"] = list(self.pairs)
        if labelled:
            columns |= {"label": list(self.labels), "unseen": list(self.unseen)}
        return datasets.Dataset.from_dict(columns)


@dataclass(frozen=True)
class TextTask(EndTask):
    """A labelled task on text, read and checked (see `EndTask`)."""

    source: TextSource
    labels: tuple[str, ...]
    train: LabelledTexts
    dev: LabelledTexts
    test: LabelledTexts
    fingerprints: dict[str, str]
    notes: dict[str, Any]
    rows: Sequence[tuple[str, Example]]  # splits of train's table, where some were held out of it
    unit: str  # of `Example.number`: `line` or `row`
    unlabelled: LabelledTexts | None = None  # training texts that have or keep no label

    @property
    def max_length(self) -> int:
        return self.source.max_length

    @property
    def evaluated_texts(self) -> list[str]:
        """All texts of dev and test, both texts of each pair."""
        splits = (self.dev, self.test)
        return [text for split in splits for text in (*split.texts, *(split.pairs or ()))]

    def digest(self) -> str:
        return digest_of(":".join(self.fingerprints.values()))

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return rows with `input_ids`, `label` and `unseen`, tokenised or from the cache."""
        text_encoder = require_text_encoder(encoder, f"task {self.name}")
        check_length("task.max_length", self.max_length, text_encoder)
        splits = {}
        for split, texts in {"train": self.train, "dev": self.dev, "test": self.test}.items():
            if not len(texts):
                continue
            splits[split] = tokenise(
                texts.rows(),
                f"{split}:{self.digest()}",  # label indices and unseen marks depend on train too
                text_encoder,
                self.max_length,
                cache_dir,
                keep_blank=True,
            )
        none = splits["dev"].select([])  # with its columns, for a task without a test split
        return Splits(**{"test": none, **splits})


def _labelled_texts(
    examples: Sequence[Example],
    codes: Sequence[Any],
    trained_on: set[tuple[str, str | None]],
    numbered: bool = False,
) -> LabelledTexts:
    pairs = [example.pair for example in examples if example.pair is not None]
    return LabelledTexts(
        texts=[example.text for example in examples],
        labels=codes,
        unseen=[example.content not in trained_on for example in examples],
        pairs=pairs or None,
        numbers=[example.number for example in examples] if numbered else None,
    )
