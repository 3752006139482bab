"""Masked language modelling (Devlin et al., 2019), with logits only at positions to predict."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np
from torch import Tensor, nn

from tartan.core.seeding import generator_for
from tartan.core.task import Batch
from tartan.encoders.heads import MaskedLMHead
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.objectives.base import AtPositions, Batching, Collate, Row, token_losses
from tartan.objectives.layout import Layout, Predicted, predicted_batch
from tartan.settings import Checked, Fraction, Share

Rng = np.random.Generator
Array = np.ndarray


@dataclass(frozen=True)
class Vocabulary:
    """An encoder's vocabulary; ids are ascending."""

    size: int
    mask_id: int
    special_ids: Array  # of tokens that are never predicted nor changed

    @classmethod
    def of(cls, encoder: TextEncoder, objective: str) -> Vocabulary:
        """Return the vocabulary of an encoder with a mask token, for the objective of that name."""
        tokenizer = require_text_encoder(encoder, objective).tokenizer
        if tokenizer.mask_token_id is None:
            raise UserError(
                f"encoder {encoder.name} has no mask token, which {objective} needs; use "
                "auxiliary=none with method=finetune, or another encoder"
            )
        special = np.asarray(sorted(tokenizer.all_special_ids), dtype=np.int64)
        return cls(len(tokenizer), int(tokenizer.mask_token_id), special)


@dataclass(frozen=True)
class Corruption(Checked):
    """Replaces a chosen token by the mask token or a random one, or keeps it.

    Attributes:
        probability: share of the tokens that are chosen (paper: 0.15).
        masked: share of the chosen tokens that are replaced by the mask token (paper: 0.8).
        random: share of the chosen tokens that are replaced by a random token (paper: 0.1); the
            others are kept.
    """

    probability: Share = 0.15
    masked: Fraction = 0.8
    random: Fraction = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masked + self.random > 1:
            raise UserError(f"masked={self.masked} and random={self.random} sum to more than 1")

    def draw(self, count: int, vocabulary: Vocabulary, rng: Rng) -> tuple[Array, Array]:
        """Draw numbers in [0, 1) and tokens for `corrupted`, `(count,)` each."""
        return rng.random(count), rng.integers(0, vocabulary.size, count)

    def corrupted(
        self, tokens: Array, chosen: Array, drawn: tuple[Array, Array], vocabulary: Vocabulary
    ) -> Array:
        """Return the tokens with the `chosen` ones, bool, corrupted: all `(tokens,)`."""
        action, replacement = drawn
        masked = chosen & (action < self.masked)
        randomised = chosen & ~masked & (action < self.masked + self.random)
        return np.where(masked, vocabulary.mask_id, np.where(randomised, replacement, tokens))


class MaskedLM(Corruption, AtPositions):
    """Predicts the chosen tokens, which are corrupted; a unit is a token to predict."""

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return token_losses(body, head, features, targets)

    def new_head(self, encoder: TextEncoder) -> MaskedLMHead:
        return encoder.new_mlm_head()

    def collate(
        self,
        encoder: TextEncoder,
        micro_batch_size: int,
        mask_seed: int | None = None,
        **how: Unpack[Batching],
    ) -> Collate:
        """See `TaskObjective.collate`.

        With `mask_seed`, each text has masks of its own, at least one, which are the same in every
        evaluation; None draws the masks of a batch from its generator.
        """
        vocabulary = Vocabulary.of(encoder, "masked language modelling")
        layout = Layout.of(encoder, micro_batch_size, **how)
        return partial(self._batch, layout, vocabulary, mask_seed)

    def _batch(
        self,
        layout: Layout,
        vocabulary: Vocabulary,
        mask_seed: int | None,
        rows: Sequence[Row],
        rng: Rng,
    ) -> Batch:
        """Return the batch; masks depend neither on the micro-batch size nor on padding."""
        originals = [np.asarray(row["input_ids"], dtype=np.int64) for row in rows]
        if mask_seed is None:
            flat = self._corrupt(np.concatenate(originals), vocabulary, rng)
            ends = np.cumsum([len(ids) for ids in originals])[:-1]
            drawn = list(zip(*(np.split(values, ends) for values in flat), strict=True))
        else:  # masks depend on the seed and the text alone
            keys = (hashlib.sha256(ids.tobytes()).hexdigest() for ids in originals)
            rngs = (generator_for(mask_seed, "masks", key) for key in keys)
            pairs = zip(originals, rngs, strict=True)
            drawn = [self._corrupt(ids, vocabulary, own) for ids, own in pairs]
        texts = []
        for row, ids, (chosen, corrupted) in zip(rows, originals, drawn, strict=True):
            positions = np.flatnonzero(chosen)
            texts.append(Predicted(corrupted, row, positions, ids[positions]))
        return predicted_batch(layout, texts)

    def _corrupt(self, flat: Array, vocabulary: Vocabulary, rng: Rng) -> tuple[Array, Array]:
        """Choose the tokens to predict, bool, and corrupt the tokens: `(tokens,)` both."""
        allowed = ~np.isin(flat, vocabulary.special_ids)
        chosen = (rng.random(len(flat)) < self.probability) & allowed
        drawn = self.draw(len(flat), vocabulary, rng)
        if not chosen.any():
            # in a batch of very short texts, predict one token rather than divide by zero
            candidates = np.flatnonzero(allowed) if allowed.any() else np.arange(len(flat))
            chosen[candidates[int(drawn[0][0] * len(candidates))]] = True
        return chosen, self.corrupted(flat, chosen, drawn, vocabulary)
