"""Texts that continued pre-training never sees, by whose perplexity it is judged."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from src.configuration.options import Checked, Count, Length, Natural, Part
from src.evaluation.monitor import PERPLEXITY


@dataclass(frozen=True)
class HeldOutText(Checked):
    """Held-out text in the end task's place (`conf/task/held_out_text.yaml`).

    Attributes:
        name: the name the result is reported under.
        max_length: longest input of a corpus that sets none [tokens].
        share: of a corpus' texts, that are not trained on.
        most: of these, the texts of a corpus that are evaluated, about.
        seed: of the choice and of the masks. Perplexities are comparable only where it, the share
            and the tokenizer are the same.
    """

    name: str = "held_out_text"
    max_length: Length = 128
    share: Part = 0.02
    most: Count = 2000
    seed: Natural = 0

    @property
    def metric(self) -> str:
        """Perplexity of the masked tokens; lower is better."""
        return PERPLEXITY

    @property
    def fingerprint(self) -> str:
        """Return what decides which texts of a corpus are held out."""
        return f"{self.share:g} {self.most} {self.seed}"

    def evaluated_share(self, count: int) -> float:
        """Share of a corpus of `count` texts on which the perplexity is measured."""
        return min(self.share, self.most / count)

    def place(self, text: str | None) -> float:
        """A number in [0, 1) drawn for what the text says, white space apart; 1 for a blank one.

        Below `share` it is held out, of whatever corpus: its repeats go with it.
        """
        words = (text or "").split()
        if not words:
            return 1.0
        digest = hashlib.sha256(f"{self.seed}\x1f{' '.join(words)}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64
