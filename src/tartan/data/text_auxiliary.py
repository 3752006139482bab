"""Reads an auxiliary task's text: the end task's own (TAPT), or a domain corpus (DAPT)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import datasets

from tartan.data.auxiliary import AuxiliaryContext, AuxiliaryExamples, size_of
from tartan.data.corpus import (
    Corpus,
    choose_part,
    hold_out,
    load_corpus,
    load_corpus_from_hub,
)
from tartan.data.corpus_files import files_of
from tartan.data.corpus_manifest import is_corpus_folder
from tartan.data.decontaminate import decontaminated, warn_of_held_out_in
from tartan.data.file_task import FileTask
from tartan.data.held_out_text import HeldOutText
from tartan.data.nearest import choose_nearest
from tartan.data.text_task import TextTask
from tartan.data.tokenise import check_length, tokenise, tokenised_as_read
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.objectives.base import TaskObjective, check_objective
from tartan.settings import Checked, Length, Size

log = logging.getLogger(__name__)

TOKENISED_AHEAD = 100_000
"""Maximum number of a corpus folder's examples that are tokenised, and cached, before training.

A run often sees only a small part of a larger corpus, whose examples are tokenised when a batch
takes them. The batches are the same either way.
"""
_OF_HUB = {"hub_config": None, "split": "train"}
"""Options that say what to read of a data set on the Hub, with their values where none is given."""
_OF_DOMAIN_TEXT = {**_OF_HUB, "column": "text", "size": None, "at_most": False}
"""Options that domain text alone has, with their values where none is given."""


@dataclass(frozen=True)
class AuxiliaryText(Checked):
    """A source of an auxiliary task's text.

    Attributes:
        text: `task` for the end task's training texts, `domain` for a corpus.
        path: the corpus' file, folder or glob, or the folder that `src.build_corpus` wrote; None
            takes the end task's own domain text.
        hub: instead of a file, a data set on the Hugging Face Hub.
        hub_config: its configuration.
        split: its split.
        column: the column that holds the text (JSONL, Parquet, Hub).
        size: multiples of the end task's training examples, or `all`; None takes
            `auxiliary.size`. It applies to domain text only.
        max_length: longest input; None takes the end task's [tokens].
        select: which part of a corpus `size` takes: `random`, or the texts `nearest` to the end
            task's training texts (see `tartan.data.nearest`), decontaminated first.
        at_most: take all of a corpus that holds less than `size` asks for; otherwise that is an
            error.
        labelled_only: of the end task's training texts, take only those that keep their labels
            (`task.labelled`).

    Raises:
        UserError: options contradict each other; the message names them.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.select == "nearest" and self.text == "task":
            raise UserError("select=nearest is for domain text; the task's own is taken whole")
        if self.path is not None and self.hub is not None:
            raise UserError("give a path or a hub data set, not both")
        if self.text == "task" and (self.path is not None or self.hub is not None):
            raise UserError("text=task takes no path or hub data set")
        given = [name for name, usual in _OF_DOMAIN_TEXT.items() if getattr(self, name) != usual]
        if self.text == "task" and given:
            raise UserError(f"{given[0]} is for domain text; the task's own is taken whole")
        if self.hub is None and given and given[0] in _OF_HUB:
            raise UserError(f"{given[0]} is for a data set on the Hub; give hub=NAME too")
        if self.labelled_only and self.text == "domain":
            raise UserError("labelled_only is for the task's own text; no domain text has labels")

    def check_text(self, name: str, encoder: Encoder) -> TextEncoder:
        """Return `encoder` after checking that it reads text of the length asked for.

        Raises:
            UserError: it does not.
        """
        text_encoder = require_text_encoder(encoder, f"auxiliary {name}")
        if self.max_length is not None:
            check_length(f"auxiliary.{name}.max_length", self.max_length, text_encoder)
        return text_encoder

    def read(
        self,
        name: str,
        context: AuxiliaryContext,
        objective: TaskObjective[TextEncoder],
        *,
        labelled: bool = False,
    ) -> AuxiliaryExamples:
        """Find, choose and tokenise the text.

        Args:
            name: the key below `auxiliary` in the config, for messages.
            context: the end task, the encoder and settings.
            objective: the objective that will be trained on the rows.
            labelled: whether rows of the end task's own text have its `label`.

        Raises:
            UserError: the text cannot be read (see `tartan.data.corpus`), or the end task is not on
                text.
        """
        if context.held_out is not None:
            return self._without_end_task(context.held_out, name, context, objective)
        task = text_task_of(name, context)
        removed = None
        if self.text == "task":
            size = None
            part = training_texts(task, labelled=labelled, labelled_only=self.labelled_only)
            if context.decontaminate:
                part, removed = decontaminated(part, task, context.cache_dir)
        else:
            size, option = size_of(name, self.size, context.default_size)
            corpus = self._domain_corpus(task, size, context.cache_dir)
            nearest = self.select == "nearest"
            if context.decontaminate or nearest:
                corpus, removed = decontaminated(corpus, task, context.cache_dir)
            if self.at_most and size is not None:
                size = size if len(corpus.texts) >= round(size * context.train_examples) else None
            if nearest and size is not None:
                part = choose_nearest(corpus, task, size, context.seed, option, context.cache_dir)
            else:
                part = choose_part(corpus, size, context.train_examples, context.seed, option)
            if removed is None:
                warn_of_held_out_in(name, part, task)
        return AuxiliaryExamples(
            objective,
            self._rows(name, part, task.max_length, context),
            part.source,
            size,
            part.fingerprint,
            part.texts,
            decontaminated=removed,
        )

    def _without_end_task(
        self,
        held_out: HeldOutText,
        name: str,
        context: AuxiliaryContext,
        objective: TaskObjective[TextEncoder],
    ) -> AuxiliaryExamples:
        """Return the whole corpus without the held-out texts, for a run without an end task.

        Raises:
            UserError: the text or its size is defined in terms of an end task.
        """
        if self.text == "task" or (self.path is None and self.hub is None):
            raise UserError(
                f"there is no end task whose text auxiliary {name} could take; name text of your "
                f"own: auxiliary.{name}.path=FILE"
            )
        size, option = size_of(name, self.size, context.default_size)
        if size is not None:
            raise UserError(
                f"{option}={size:g} counts in the training examples of an end task, and there is "
                f"none; use {option}=all"
            )
        if context.decontaminate or self.select == "nearest":
            asked = (
                "auxiliary.decontaminate" if context.decontaminate else f"auxiliary.{name}.select"
            )
            raise UserError(f"{asked} compares with the texts of an end task, and there is none")
        kept, apart = hold_out(self._domain_corpus(None, size, context.cache_dir), held_out)
        return AuxiliaryExamples(
            objective,
            self._rows(name, kept, held_out.max_length, context),
            kept.source,
            size,
            kept.fingerprint,
            kept.texts,
            self._rows(name, apart, held_out.max_length, context, ahead=True),
        )

    def _rows(
        self,
        name: str,
        part: Corpus,
        max_length: int,
        context: AuxiliaryContext,
        ahead: bool = False,
    ) -> datasets.Dataset:
        """Return the texts tokenised: when they are read if they are many, unless `ahead`."""
        encoder = require_text_encoder(context.encoder, f"auxiliary {name}")
        length = max_length if self.max_length is None else self.max_length
        if not ahead and not part.has_blanks and len(part.texts) > TOKENISED_AHEAD:
            rows = tokenised_as_read(part.texts, encoder.tokenizer, length)
        else:
            rows = tokenise(
                part.texts,
                part.fingerprint,
                encoder.tokenizer,
                length,
                context.cache_dir,
                keep_blank=False,
                token_types=encoder.uses_token_types,
            )
        if len(rows) == 0:
            raise UserError(f"auxiliary {name}: {part.source} holds blank lines only")
        return rows

    def _domain_corpus(
        self, end_task: TextTask | None, size: float | None, cache_dir: Path
    ) -> Corpus:
        if self.hub is not None:
            return load_corpus_from_hub(
                self.hub, self.hub_config, self.split, self.column, cache_dir
            )
        if end_task is None:
            assert self.path is not None, "checked before"
            return load_corpus(Path(self.path), self.column, cache_dir)
        path = end_task.source.domain_file(size) if self.path is None else Path(self.path)
        _warn_of_own_files(end_task, path)
        return load_corpus(path, self.column, cache_dir)


@dataclass(frozen=True, kw_only=True)
class TextAuxiliary(AuxiliaryText):
    """An auxiliary task on text (an entry of `conf/auxiliary/`; see `Auxiliary`).

    Attributes:
        objective: the task's objective.
        optional: do without this task of domain text where neither `path` nor `hub` is given.
    """

    objective: TaskObjective[TextEncoder]
    optional: bool = False

    @property
    def kind(self) -> str:
        return self.text

    @property
    def left_out(self) -> bool:
        is_named = self.path is not None or self.hub is not None
        return self.optional and self.text == "domain" and not is_named

    def check(self, name: str, encoder: Encoder) -> None:
        """See `Auxiliary.check`."""
        check_objective(self.objective, f"auxiliary {name}: objective")
        self.objective.collate(self.check_text(name, encoder), 1)

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """See `AuxiliaryText.read`."""
        return self.read(name, context, self.objective)


def text_task_of(name: str, context: AuxiliaryContext) -> TextTask:
    """Return the end task, after checking that it is one on text.

    Args:
        name: the auxiliary task that needs it, for the message.
        context: holds the end task.

    Raises:
        UserError: the end task is not on text.
    """
    task = context.end_task
    if not isinstance(task, TextTask):
        given = "there is no end task" if task is None else f"task {task.name} is not"
        raise UserError(f"auxiliary {name} is text, but {given}")
    return task


def _warn_of_own_files(end_task: TextTask, path: Path) -> None:
    """Warn where a corpus holds labelled files: their dev and test texts would be trained on."""
    if not isinstance(end_task.source, FileTask) or is_corpus_folder(path.expanduser()):
        return
    files = {file.resolve() for file in files_of(path.expanduser())}
    own = [str(file) for file in end_task.source.own_files() if file.resolve() in files]
    if own:
        log.warning(
            "corpus %s holds the task's own %s: masked language modelling sees the texts that the "
            "model is to be tested on; keep them elsewhere",
            path,
            ", ".join(own),
        )


def training_texts(
    end_task: TextTask, *, labelled: bool = False, labelled_only: bool = False
) -> Corpus:
    """Return the end task's training texts as a corpus (TAPT), without dev and test texts.

    Args:
        end_task: the end task.
        labelled: whether to return only those that have labels, with these.
        labelled_only: whether to return only those that have labels, without these.
    """
    if labelled:
        kind, texts = "labelled", end_task.train.rows()
    elif labelled_only:
        kind, texts = "labelled texts", end_task.train.rows(labelled=False)
    else:
        kind, texts = "tapt", end_task.own_texts
    # of all splits: what is held out of the training file is not in it
    return Corpus(f"{end_task.name} train", texts, fingerprint=f"{kind}:{end_task.digest()}")
