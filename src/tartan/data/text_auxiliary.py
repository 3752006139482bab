"""Reads an auxiliary task's text: the end task's own (TAPT), or a part of a corpus (DAPT)."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

import datasets
import numpy as np
import pandas as pd

from tartan.core.seeding import generator_for
from tartan.data.corpus import Corpus, cached_file, load_corpus, load_corpus_from_hub
from tartan.data.end_task import HeldOutText
from tartan.data.overlap import WORDS, WORDS_VERSION, NgramIndex, folded, words_of
from tartan.data.prepared import AuxiliaryContext, AuxiliaryExamples, choose_rows, size_of
from tartan.data.text_task import TextTask
from tartan.data.tokenise import check_length, tokenise, tokenised_as_read
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.files import digest_of
from tartan.objectives.base import TaskObjective
from tartan.objectives.masked_lm import MaskedLM
from tartan.settings import Checked, Length, Size

log = logging.getLogger(__name__)

TOKENISED_AHEAD = 100_000
"""Maximum number of a corpus folder's examples that are tokenised, and cached, before training; of
more, a batch's when it takes them. The batches are the same either way."""
_MOST_WARNED = 100_000
"""Maximum number of texts that are compared before a run; `tartan check` compares more."""
_MOST_RANKED = 1_000_000
"""Maximum number of texts that are ranked; of a larger corpus, a seeded random choice."""
_AT_ONCE = 10_000  # number of texts that are read into memory at a time
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
            task's training texts by BM25, decontaminated first.
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
            corpus = self.domain_corpus(size, context)
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
            needed = "path or hub, size=all, select=random and decontaminate=false"
            raise UserError(f"auxiliary {name}: without an end task it needs {needed}")
        kept, apart = held_out.divide(self.domain_corpus(size, context))
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

    def domain_corpus(self, size: float | None, context: AuxiliaryContext) -> Corpus:
        """Return the whole corpus, of the task's own domain texts a file that suits `size`."""
        column, cache, task = self.column, context.cache_dir, cast(TextTask, context.task)
        if self.hub is not None:
            return load_corpus_from_hub(self.hub, self.hub_config, self.split, column, cache)
        path = task.source.domain_file(size) if self.path is None else Path(self.path)
        return load_corpus(path, column, cache)


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


def choose_part(
    corpus: Corpus, task: TextTask, size: float, seed: int, option: str, cache_dir: Path
) -> Corpus:
    """Return so many rows of the corpus, as multiples of the task's; a smaller size gives a subset.

    Blank rows count, as they do in the paper's files, but are not trained on.
    """
    chosen = choose_rows(len(corpus.texts), size, len(task.train), seed, option, corpus.source)
    fingerprint = f"{corpus.fingerprint}:{len(chosen)}:{seed}"
    return replace(corpus, texts=corpus.texts.select(chosen), fingerprint=fingerprint)


def warn_of_held_out_in(name: str, corpus: Corpus, task: TextTask) -> None:
    """Log how many dev and test texts are in a small corpus, that of auxiliary task `name`."""
    if len(corpus.texts) > _MOST_WARNED:
        return
    held_out = {folded(text) for text in task.evaluated_texts} - {""}
    if found := held_out.intersection(folded(text or "") for text in corpus.texts["text"]):
        log.warning(
            "auxiliary %s: %s dev and test texts are in %s, so that the model is trained on texts "
            "that it is tested on; auxiliary.decontaminate=true leaves them out",
            name, f"{len(found):,}", corpus.source,
        )  # fmt: skip


def decontaminated(corpus: Corpus, task: TextTask, cache_dir: Path) -> tuple[Corpus, int]:
    """Return the corpus without texts that overlap with dev or test, and the number of those."""
    name = _key(corpus, task, WORDS)

    def write(path: Path) -> None:
        index = NgramIndex(task.evaluated_texts)
        columns = [name for name in ("text", "text_pair") if name in corpus.texts.column_names]
        marks = [
            np.logical_or.reduce([index.contaminates(batch[name]) for name in columns])
            for batch in corpus.texts.iter(_AT_ONCE)
        ]
        np.flatnonzero(np.concatenate(marks)).tofile(path)

    removed = np.fromfile(cached_file(cache_dir / "decontaminated" / name, write), np.int64)
    if not len(removed):
        return corpus, 0
    kept = np.setdiff1d(np.arange(len(corpus.texts)), removed)
    if not len(kept):
        raise UserError(f"every text of {corpus.source} overlaps with a dev or test text")
    texts = corpus.texts.select(kept)
    return replace(corpus, texts=texts, fingerprint=f"{name}:decontaminated"), len(removed)


def choose_nearest(
    corpus: Corpus, task: TextTask, size: float, seed: int, option: str, cache_dir: Path
) -> Corpus:
    """Return the texts nearest to the end task's, of which `choose_part` would take as many."""
    available = len(corpus.texts)
    count = len(choose_rows(available, size, len(task.train), seed, option, corpus.source))
    if count > _MOST_RANKED:
        raise UserError(f"{option}={size:g} asks for more than the {_MOST_RANKED:,} of nearest")
    name = _key(corpus, task, count, seed, _MOST_RANKED, version("bm25s"))

    def write(path: Path) -> None:
        order = generator_for(seed, "corpus part").permutation(available)
        candidates = np.sort(order[:_MOST_RANKED])
        texts = corpus.texts.select(candidates)["text"][:]
        queries = [*task.train.texts, *(task.train.pairs or ())]
        np.sort(candidates[nearest(texts, queries, count, seed)]).tofile(path)

    places = np.fromfile(cached_file(cache_dir / "nearest" / name, write), np.int64)
    return replace(corpus, texts=corpus.texts.select(places), fingerprint=f"{name}:nearest")


def nearest(
    texts: Sequence[str | None], queries: Sequence[str], count: int, seed: int
) -> np.ndarray:
    """Return the indices of the `count` texts nearest to the queries, nearest first, `(count,)`.

    As in TLM (Yao et al. 2021), a text is ordered by the best rank that a query of BM25 gives it,
    then by its score there, then by its index. Those that share no word come last, in random order.
    """
    # JAX, which bm25s imports where it is there, would take most of a GPU's memory
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from bm25s import BM25

    rest = generator_for(seed, "nearest", "rest")
    documents = [words_of(text or "") for text in texts]
    if not any(documents):  # bm25s cannot index this
        return rest.permutation(len(texts))[:count]
    index = BM25()
    index.index(documents, show_progress=False)
    words = [split for split in map(words_of, dict.fromkeys(queries)) if split]
    most = min(len(texts), 16 + 4 * count // max(len(words), 1))
    while len(ranked := _ranked(index, words, most)) < count and most < len(texts):
        most = min(len(texts), 4 * most)
    others = np.setdiff1d(np.arange(len(texts)), ranked)
    return np.concatenate([ranked, rest.permutation(others)])[:count]


def _ranked(index: Any, queries: Sequence[list[str]], most: int) -> np.ndarray:
    """Return the indices of texts among the first `most` of a query, in the order of `nearest`."""
    ranks = [pd.DataFrame({"text": [], "rank": [], "score": []}, dtype=int)]
    for words in queries:
        scores = index.get_scores(words)
        # all that score as much as the last that counts: of equal ones, the first is to win
        least = np.partition(scores, -most)[-most]
        texts = np.flatnonzero((scores >= least) & (scores > 0))
        texts = texts[np.lexsort((texts, -scores[texts]))][:most]
        columns = {"text": texts, "rank": np.arange(len(texts)), "score": -scores[texts]}
        ranks.append(pd.DataFrame(columns))
    ordered = pd.concat(ranks).sort_values(["rank", "score", "text"])["text"]
    return np.asarray(ordered.drop_duplicates(), dtype=np.int64)


def _key(corpus: Corpus, task: TextTask, *settings: object) -> str:
    parts = [corpus.fingerprint, task.digest(), *settings, WORDS_VERSION]
    return digest_of(":".join(map(str, parts)))
