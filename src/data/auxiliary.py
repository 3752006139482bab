"""An auxiliary task's text: the end task's own (TAPT), or a domain corpus (DAPT)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import datasets
from transformers import PreTrainedTokenizerBase

from src.data.corpus import Corpus, choose_part, load_corpus_file, load_corpus_from_hub
from src.data.end_task import EndTask, EndTaskSource
from src.data.tokenise import tokenise
from src.errors import UserError
from src.objectives.base import TextObjective


@dataclass(frozen=True)
class Auxiliary:
    """One auxiliary task (an entry of `conf/auxiliary/`).

    Attributes:
        objective: what it asks of the encoder.
        text: `task` for the end task's training texts, `domain` for a corpus.
        path: the corpus' file; None takes the end task's own domain text.
        hub: instead of a file, a data set on the Hugging Face Hub.
        hub_config: its configuration.
        split: its split.
        column: the column that holds the text (JSONL, Parquet, Hub).
        size: multiples of the end task's training examples, or `all`; None takes
            `auxiliary.size`. It applies to domain text only.
        max_length: longest input in tokens; None takes the end task's.
    """

    objective: TextObjective
    text: str = "domain"
    path: str | None = None
    hub: str | None = None
    hub_config: str | None = None
    split: str = "train"
    column: str = "text"
    size: float | str | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.text not in ("task", "domain"):
            raise UserError(f"an auxiliary task's text must be task or domain, got {self.text!r}")
        if self.path is not None and self.hub is not None:
            raise UserError("give an auxiliary task a path or a hub data set, not both")
        if self.text == "task" and (self.path is not None or self.hub is not None):
            raise UserError("an auxiliary task with text=task takes no path or hub data set")


@dataclass(frozen=True)
class AuxiliaryTexts:
    """An auxiliary task's tokenised text.

    Attributes:
        examples: rows of `input_ids`.
        source: where the text came from.
        size: as asked, in multiples of the training examples; None for all (and for TAPT).
        fingerprint: of the source and the choice.
    """

    examples: datasets.Dataset
    source: str
    size: float | None
    fingerprint: str


def parse_size(value: float | str | None, option: str) -> float | None:
    """A size from the config: a positive number, or None for `all`.

    Raises:
        UserError: anything else.
    """
    if value == "all":
        return None
    try:
        number = float(value if value is not None else math.nan)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number <= 0:
        raise UserError(f"{option} must be a positive number or 'all', got {value!r}")
    return number


def auxiliary_texts(
    name: str,
    auxiliary: Auxiliary,
    default_size: float | str,
    source: EndTaskSource,
    end_task: EndTask,
    tokenizer: PreTrainedTokenizerBase,
    seed: int,
    cache_dir: Path,
) -> AuxiliaryTexts:
    """Find, choose and tokenise the text of auxiliary task `name`.

    Args:
        default_size: `auxiliary.size`.
        seed: of the choice of a part of the corpus.
        cache_dir: for the corpus as Arrow and for the tokenised text.

    Raises:
        UserError: see `src.data.corpus`.
    """
    own_length = auxiliary.max_length
    max_length = end_task.max_length if own_length is None else own_length

    def tokenised(corpus: Corpus) -> datasets.Dataset:
        return tokenise(
            corpus.texts, corpus.fingerprint, tokenizer, max_length, cache_dir, keep_blank=False
        )

    if auxiliary.text == "task":
        corpus = training_texts(end_task)
        return AuxiliaryTexts(tokenised(corpus), corpus.source, None, corpus.fingerprint)
    own = auxiliary.size is not None
    option = f"auxiliary.{name}.size" if own else "auxiliary.size"
    size = parse_size(auxiliary.size if own else default_size, option)
    corpus = _domain_corpus(auxiliary, lambda: source.domain_file(size), cache_dir)
    part = choose_part(corpus, size, len(end_task.train), seed, option)
    examples = tokenised(part)
    if len(examples) == 0:
        raise UserError(f"auxiliary {name}: {part.source} holds blank lines only")
    return AuxiliaryTexts(examples, part.source, size, part.fingerprint)


def training_texts(end_task: EndTask) -> Corpus:
    """The end task's training texts as a corpus (TAPT); dev and test texts are never in it."""
    return Corpus(
        source=f"{end_task.name} train",
        texts=datasets.Dataset.from_dict({"text": list(end_task.train.texts)}),
        fingerprint=f"tapt:{end_task.fingerprints['train']}",
    )


def _domain_corpus(
    auxiliary: Auxiliary, own_domain_file: Callable[[], Path], cache_dir: Path
) -> Corpus:
    if auxiliary.hub is not None:
        return load_corpus_from_hub(
            auxiliary.hub, auxiliary.hub_config, auxiliary.split, auxiliary.column, cache_dir
        )
    path = own_domain_file() if auxiliary.path is None else Path(auxiliary.path)
    return load_corpus_file(path, auxiliary.column, cache_dir)
