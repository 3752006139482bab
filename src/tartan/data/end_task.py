"""What a run is judged by: a labelled end task, or text that is held out in place of one."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from tartan.data.corpus import Corpus
from tartan.data.kinds import kind_of
from tartan.data.task_kind import TaskKind
from tartan.encoders.base import Encoder
from tartan.errors import UserError
from tartan.evaluation.stage_result import PERPLEXITY
from tartan.settings import Checked, Count, Length, Natural, Part

_READ = 10_000  # number of texts that are read into memory at a time


@dataclass(frozen=True)
class Splits:
    """The end task's rows as an encoder reads them: train, dev and test.

    Each row has `label`, an index; `unseen`, whether the example's content is absent from train;
    and the inputs that the task's objective collates.
    """

    train: datasets.Dataset
    dev: datasets.Dataset
    test: datasets.Dataset


class EndTask(ABC):
    """A labelled task, read and checked.

    Attributes:
        source: the class that `conf/task/` names, whose `load` returned the task; has its `name`,
            and the `metric` by which a checkpoint is chosen.
        labels: label names, in the order of their indices.
        fingerprints: a checksum of each split's data.
        notes: how the data were read, as plain JSON values for `result.json`.
        train: the training examples, which have `labels`, codes (see `TaskKind`).
    """

    source: Any
    labels: tuple[str, ...]
    fingerprints: dict[str, str]
    notes: dict[str, Any]
    train: Any

    @property
    def name(self) -> str:
        return str(self.source.name)

    @property
    def metric(self) -> str:
        return str(self.source.metric)

    @property
    def kind(self) -> TaskKind:
        return kind_of(self.source)

    @property
    def max_length(self) -> int | None:
        """Longest input [tokens]; None where inputs are not tokens."""
        return None

    @property
    def label_counts(self) -> tuple[int, ...]:
        """Number of training examples of each label, in index order."""
        return self.kind.counts(self.train.labels, self.labels)

    @abstractmethod
    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return the splits as `encoder` reads them; META-TARTAN's `B_val` is drawn from dev."""


@dataclass(frozen=True)
class HeldOutText(Checked):
    """Text that is held out in place of an end task (`conf/task/held_out_text.yaml`).

    Attributes:
        name: the name the result is reported under.
        max_length: longest input of a corpus that sets no length of its own [tokens].
        share: share of a corpus' texts that are held out.
        most: maximum number of held-out texts of a corpus that are evaluated, approximately.
        seed: seed of the choice and of the masks. Perplexities are comparable only where seed,
            share and tokenizer are the same.
    """

    name: str = "held_out_text"
    max_length: Length = 128
    share: Part = 0.02
    most: Count = 2000
    seed: Natural = 0

    metric = PERPLEXITY

    def divide(self, corpus: Corpus) -> tuple[Corpus, Corpus]:
        """Return the texts of a corpus to train on, and those to evaluate on."""
        count = len(corpus.texts)
        drawn = (self._place(text) for block in corpus.texts.iter(_READ) for text in block["text"])
        places = np.fromiter(drawn, dtype=np.float64, count=count)
        sides = []
        for name, members in (
            ("rest", places >= self.share),
            ("held out", places < min(self.share, self.most / count)),
        ):
            if not members.any():
                raise UserError(f"task.share={self.share:g}: {corpus.source} has no text {name}")
            how = f"{name} {self.share:g} {self.most} {self.seed}"
            texts = corpus.texts.select(np.flatnonzero(members))
            sides.append(replace(corpus, texts=texts, fingerprint=f"{corpus.fingerprint}:{how}"))
        return sides[0], sides[1]

    def _place(self, text: str | None) -> float:
        """Return a number in [0, 1) drawn from the words alone, so that repeats share it; or 1."""
        words = (text or "").split()
        if not words:
            return 1.0
        digest = hashlib.sha256(f"{self.seed}\x1f{' '.join(words)}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64
