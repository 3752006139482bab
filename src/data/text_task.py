"""A labelled task on text: its splits, its label order, and which texts were never trained on."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import datasets

from src.data.checksum import check_is_file, sha256_of
from src.data.end_task import Splits
from src.data.held_out import HeldOut
from src.data.remarks import warn_of_cuts, warn_of_texts
from src.data.tokenise import check_length, cuts_of, tokenise
from src.encoders.base import Encoder
from src.encoders.text_encoder import reads_text
from src.errors import UserError


@dataclass(frozen=True)
class TaskFiles:
    """Where an end task's labelled splits lie: JSONL with `text` and `label`.

    `dev` may be a part of the training examples instead of a file.
    """

    train: Path
    dev: Path | HeldOut
    test: Path


@dataclass(frozen=True)
class TextSource(ABC):
    """A text task in JSONL files; a subclass says where they are.

    Attributes:
        name: the name the result is reported under.
        metric: the metric by which a checkpoint is chosen: a name under `metrics` in the config.
        max_length: longest input; longer texts are cut [tokens].
    """

    name: str
    metric: str
    max_length: int

    @abstractmethod
    def files(self) -> TaskFiles:
        """The labelled files, fetched or built where that is needed."""

    @abstractmethod
    def domain_file(self, size: float | None) -> Path:
        """Unlabelled text of the task's domain that suits `size` (None: all there is).

        Raises:
            UserError: the task has no domain text.
        """

    def load(self) -> TextTask:
        """Read the files.

        Raises:
            UserError: a file is missing or malformed (with its line), dev or test has a label that
                train lacks, or a label is too rare for dev to be split off.
        """
        return load_text_task(self)


@dataclass(frozen=True)
class LabelledTexts:
    """One split: texts, their labels as indices, and whether each text is absent from train."""

    texts: Sequence[str]
    labels: Sequence[int]
    unseen: Sequence[bool]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class TextTask:
    """A labelled task on text, read and checked (see `EndTask`).

    Attributes:
        source: where it came from.
        labels: label names in index order (sorted).
        train: training split.
        dev: validation split.
        test: test split.
        fingerprints: SHA-256 of each split's file, or how it was split off another.
    """

    source: TextSource
    labels: tuple[str, ...]
    train: LabelledTexts
    dev: LabelledTexts
    test: LabelledTexts
    fingerprints: dict[str, str]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def metric(self) -> str:
        return self.source.metric

    @property
    def max_length(self) -> int:
        """Longest input in tokens."""
        return self.source.max_length

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Rows of `input_ids`, `label` and `unseen`, tokenised or found in the cache.

        Raises:
            UserError: the encoder does not read text, or not so much of it.
        """
        text_encoder = reads_text(encoder, f"task {self.name}")
        check_length("task.max_length", self.max_length, text_encoder)
        # A split's label indices and unseen marks depend on train too.
        together = ":".join(self.fingerprints.values())

        def rows(split: str, texts: LabelledTexts) -> datasets.Dataset:
            columns = {
                "text": list(texts.texts),
                "label": list(texts.labels),
                "unseen": list(texts.unseen),
            }
            return tokenise(
                datasets.Dataset.from_dict(columns),
                f"{split}:{together}",
                text_encoder.tokenizer,
                self.max_length,
                cache_dir,
                keep_blank=True,
            )

        splits = {
            "train": rows("train", self.train),
            "dev": rows("dev", self.dev),
            "test": rows("test", self.test),
        }
        cuts = {split: cuts_of(tokenised) for split, tokenised in splits.items()}
        warn_of_cuts(self.name, self.max_length, cuts)
        return Splits(**splits)


def load_text_task(source: TextSource) -> TextTask:
    """See `TextSource.load`."""
    files = source.files()
    paths = {"train": files.train, "test": files.test}
    if isinstance(files.dev, Path):
        paths = {"train": files.train, "dev": files.dev, "test": files.test}
    read = {split: read_labelled(path) for split, path in paths.items()}
    fingerprints = {split: sha256_of(path) for split, path in paths.items()}
    labels = tuple(sorted({label for _, label in read["train"]}))
    if len(labels) < 2:
        raise UserError(f"{files.train}: training needs at least two labels, found {list(labels)}")
    if isinstance(files.dev, HeldOut):
        train, dev = files.dev.split(read["train"], files.train)
        read = {"train": train, "dev": dev, "test": read["test"]}
        paths["dev"] = files.train
        fingerprints["dev"] = f"{files.dev} of {fingerprints['train']}"
    index = {label: position for position, label in enumerate(labels)}
    trained_on = {text for text, _ in read["train"]}
    splits = {}
    for split, examples in read.items():
        unknown = sorted({label for _, label in examples} - set(labels))
        if unknown:
            raise UserError(f"{paths[split]}: labels {unknown} do not occur in {files.train}")
        splits[split] = LabelledTexts(
            texts=[text for text, _ in examples],
            labels=[index[label] for _, label in examples],
            unseen=[text not in trained_on for text, _ in examples],
        )
    warn_of_texts(source.name, read)
    return TextTask(
        source=source,
        labels=labels,
        **splits,
        fingerprints=fingerprints,
    )


def read_labelled(path: Path) -> list[tuple[str, str]]:
    """`(text, label)` of each line of a JSONL file; other keys are ignored.

    Raises:
        UserError: the file is missing, empty, not UTF-8, or a line of it is not as expected.
    """
    check_is_file(path)
    examples = []
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            where = f"{path}, line {number}"
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(f"{where}: not UTF-8; convert the file first") from error
            if line.startswith("\ufeff"):
                raise UserError(
                    f"{where}: begins with a byte order mark; save the file as UTF-8 without one"
                )
            if line.strip():
                examples.append(_labelled(line, where))
    if not examples:
        raise UserError(f"{path} holds no examples")
    return examples


def _labelled(line: str, where: str) -> tuple[str, str]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON ({error.msg}, column {error.colno})") from error
    except ValueError as error:
        raise UserError(f"{where}: holds a number of too many digits") from error
    except RecursionError as error:
        raise UserError(f"{where}: its brackets are nested too deeply") from error
    if not isinstance(record, dict):
        raise UserError(f"{where}: expected an object with the fields 'text' and 'label'")
    for field in ("text", "label"):
        if field not in record:
            raise UserError(f"{where}: the field {field!r} is missing")
        if not isinstance(record[field], str):
            kind = type(record[field]).__name__
            raise UserError(f"{where}: the field {field!r} must be a string, not {kind}")
        try:
            record[field].encode("utf-8")
        except UnicodeEncodeError as error:
            raise UserError(
                f"{where}: the field {field!r} holds half of a surrogate pair (\\ud800 to "
                "\\udfff), which is no text; write the whole character"
            ) from error
    return record["text"], record["label"]
