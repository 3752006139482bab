"""Decides which texts continued pre-training holds out, to measure perplexity on them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from tartan.data.corpus import Corpus
from tartan.errors import UserError
from tartan.evaluation.monitor import PERPLEXITY
from tartan.settings import Checked, Count, Length, Natural, Part

_READ = 10_000
"""Number of texts that are read into memory at a time."""


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
    """The metric: perplexity of the masked tokens; lower is better."""

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
        """Return a number in [0, 1) drawn from the text, regardless of white space; 1 if blank.

        A text is held out where this is below `share`. It depends on the text alone, so repeats of
        it are held out too, in whichever corpus.
        """
        words = (text or "").split()
        if not words:
            return 1.0
        digest = hashlib.sha256(f"{self.seed}\x1f{' '.join(words)}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64
