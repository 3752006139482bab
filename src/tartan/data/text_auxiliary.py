"""Reads an auxiliary task's text: the end task's own (TAPT), or a domain corpus (DAPT)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

import datasets

from tartan.data.corpus import Corpus, load_corpus, load_corpus_from_hub
from tartan.data.end_task import HeldOutText
from tartan.data.prepared import AuxiliaryContext, AuxiliaryExamples, size_of
from tartan.data.selection import (
    choose_nearest,
    choose_part,
    decontaminated,
    warn_of_held_out_in,
)
from tartan.data.text_task import TextTask
from tartan.data.tokenise import check_length, tokenise, tokenised_as_read
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.objectives.base import TaskObjective
from tartan.objectives.masked_lm import MaskedLM
from tartan.settings import Checked, Length, Size

TOKENISED_AHEAD = 100_000
"""Maximum number of a corpus folder's examples that are tokenised, and cached, before training; of
more, a batch's when it takes them. The batches are the same either way."""
_OF_HUB = ("hub_config", "split")
_OF_DOMAIN_TEXT = ("path", "hub", *_OF_HUB, "column", "size", "select", "at_most", "optional")


@dataclass(frozen=True)
class TextAuxiliary(Checked):
    """An auxiliary task on text (an entry of `conf/auxiliary/`; see `Auxiliary`).

    Attributes:
        text: `task` for the end task's training texts, `domain` for a corpus.
        path: the corpus' file, folder or glob, or the folder that `tartan build-corpus` wrote; None
            takes the end task's own domain text.
        hub: instead of a file, a data set on the Hugging Face Hub.
        hub_config: its configuration.
        split: its split.
        column: the column that holds the text (JSONL, Parquet, Hub).
        size: multiples of the end task's training examples, or `all`; None takes
            `auxiliary.size`. It applies to domain text only.
        max_length: longest input; None takes the end task's [tokens].
        select: which part of a corpus `size` takes: `random`, or the texts `nearest` to the end
            task's training texts (see `tartan.data.selection`), decontaminated first.
        at_most: take all of a corpus that holds less than `size` asks for; otherwise that is an
            error.
        labelled_only: of the end task's training texts, take only those that keep their labels
            (`task.labelled`).
        objective: the task's objective.
        optional: do without this task of domain text where neither `path` nor `hub` is given.
    """

    text: Literal["task", "domain"] = "domain"
    path: str | None = None
    hub: str | None = None
    hub_config: str | None = None
    split: str = "train"
    column: str = "text"
    size: Size | None = None
    max_length: Length | None = None
    select: Literal["random", "nearest"] = "random"
    at_most: bool = False
    labelled_only: bool = False
    objective: TaskObjective[TextEncoder] = field(default_factory=MaskedLM)
    optional: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = list(_OF_DOMAIN_TEXT) if self.text == "task" else ["labelled_only"]
        idle += _OF_HUB if self.hub is None else ["path"]
        for option in fields(self):
            if option.name in idle and getattr(self, option.name) != option.default:
                kind = f"text={self.text}, hub={self.hub}"
                raise UserError(f"{option.name} does not apply to an auxiliary task of {kind}")

    @property
    def kind(self) -> str:
        return self.text

    @property
    def left_out(self) -> bool:
        return self.optional and self.path is None and self.hub is None

    def check(self, name: str, encoder: Encoder) -> None:
        """See `Auxiliary.check`."""
        reader = require_text_encoder(encoder, f"auxiliary {name}")
        if self.max_length is not None:
            check_length(f"auxiliary.{name}.max_length", self.max_length, reader)
        self.objective.collate(reader, 1)

    def examples(
        self, name: str, context: AuxiliaryContext, *, labelled: bool = False
    ) -> AuxiliaryExamples:
        """Find, choose and tokenise the text; if `labelled`, the task's rows have its `label`."""
        options, cache_dir = context.options, context.cache_dir
        size, option = size_of(name, self.size, options.size)
        nearest, removed = self.select == "nearest", None
        if isinstance(context.task, HeldOutText):
            return self._without_end_task(name, context, context.task, size)
        task = text_task_of(name, context)
        if self.text == "task":
            size = None
            corpus = training_texts(task, labelled=labelled, labelled_only=self.labelled_only)
        else:
            corpus = self._domain_corpus(task, size, cache_dir)
        if options.decontaminate or nearest:
            corpus, removed = decontaminated(corpus, task, cache_dir)
        if self.at_most and size and len(corpus.texts) < round(size * len(task.train)):
            size = None
        if size is not None:
            choose = choose_nearest if nearest else choose_part
            corpus = choose(corpus, task, size, options.seed, option, cache_dir)
        if removed is None and self.text == "domain":
            warn_of_held_out_in(name, corpus, task)
        rows = self._rows(name, corpus, task.max_length, context)
        return AuxiliaryExamples(
            self.objective, rows, corpus.source, size, corpus.fingerprint, corpus.texts,
            decontaminated=removed,
        )  # fmt: skip

    def _without_end_task(
        self, name: str, context: AuxiliaryContext, held_out: HeldOutText, size: float | None
    ) -> AuxiliaryExamples:
        """Return the whole corpus without the held-out texts."""
        compares = context.options.decontaminate or self.select == "nearest"
        if (self.path is None and self.hub is None) or size is not None or compares:
            raise UserError(
                f"auxiliary {name}: without an end task, name text with path or hub, take all of "
                "it (size=all, select=random), and do not decontaminate it"
            )
        kept, apart = held_out.divide(self._domain_corpus(None, size, context.cache_dir))
        rows = self._rows(name, kept, held_out.max_length, context)
        held = self._rows(name, apart, held_out.max_length, context, ahead=True)
        return AuxiliaryExamples(
            self.objective, rows, kept.source, size, kept.fingerprint, kept.texts, held
        )

    def _rows(
        self, name: str, corpus: Corpus, length: int, context: AuxiliaryContext, ahead: bool = False
    ) -> datasets.Dataset:
        """Return the texts tokenised: when they are read if they are many, unless `ahead`."""
        encoder = require_text_encoder(context.encoder, f"auxiliary {name}")
        length = self.max_length or length
        if not ahead and not corpus.has_blanks and len(corpus.texts) > TOKENISED_AHEAD:
            return tokenised_as_read(corpus.texts, encoder.tokenizer, length)
        rows = tokenise(
            corpus.texts, corpus.fingerprint, encoder, length, context.cache_dir, keep_blank=False
        )
        if len(rows) == 0:
            raise UserError(f"auxiliary {name}: {corpus.source} holds blank lines only")
        return rows

    def _domain_corpus(
        self, end_task: TextTask | None, size: float | None, cache_dir: Path
    ) -> Corpus:
        if self.hub is not None:
            return load_corpus_from_hub(
                self.hub, self.hub_config, self.split, self.column, cache_dir
            )
        if self.path is not None:
            return load_corpus(Path(self.path), self.column, cache_dir)
        assert end_task is not None, "checked before"
        return load_corpus(end_task.source.domain_file(size), self.column, cache_dir)


def text_task_of(name: str, context: AuxiliaryContext) -> TextTask:
    """Return the end task, after checking for auxiliary task `name` that it is one on text."""
    task = context.task
    if not isinstance(task, TextTask):
        raise UserError(f"auxiliary {name} is text and needs an end task on text")
    return task


def training_texts(
    task: TextTask, *, labelled: bool = False, labelled_only: bool = False
) -> Corpus:
    """Return the end task's training texts as a corpus (TAPT), without dev and test texts.

    Those that have labels alone are returned with these if `labelled`, without if `labelled_only`.
    """
    kind, texts = "tapt", task.train.rows(labelled=labelled)
    if labelled or labelled_only:
        kind = "labelled" if labelled else "labelled texts"
    elif task.unlabelled is not None:
        texts = datasets.concatenate_datasets([texts, task.unlabelled.rows(labelled=False)])
    # of all splits: what is held out of the training file is not in it
    return Corpus(f"{task.name} train", texts, fingerprint=f"{kind}:{task.digest()}")
