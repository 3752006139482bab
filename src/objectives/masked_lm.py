"""Masked language modelling (Devlin et al., 2019), with logits at masked positions only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from src.core.task import Batch, Inputs, MicroBatch
from src.data.padding import (
    pad,
    pad_token_types,
    split_by_length,
    tokens_and_padding,
    width_of,
)
from src.encoders.text_encoder import TextEncoder, reads_text
from src.errors import UserError
from src.objectives.base import Collate, Row
from src.objectives.hidden_states import hidden_states
from src.objectives.masked_lm_head import MaskedLMHead
from src.seeding import generator_for


@dataclass(frozen=True)
class MaskedLM:
    """Predict masked tokens; a unit is a masked token.

    Attributes:
        probability: share of the tokens to predict (paper: 0.15).
        masked: of these, the share replaced by the mask token (0.8).
        random: of these, the share replaced by a random token (0.1); the rest stays.
    """

    probability: float = 0.15
    masked: float = 0.8
    random: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise UserError(f"probability of masking must be in (0, 1], got {self.probability}")
        if not (self.masked >= 0 and self.random >= 0 and self.masked + self.random <= 1):
            raise UserError(
                "shares of masked and random tokens must not be negative nor sum to more than 1, "
                f"got {self.masked} and {self.random}"
            )

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Hidden states at the positions to predict: `(masked tokens, hidden)`."""
        hidden = hidden_states(body, inputs)
        return hidden.flatten(0, 1).index_select(0, inputs["positions"])

    def targets(self, inputs: Inputs) -> Tensor:
        """The original tokens at these positions: `(masked tokens,)`."""
        targets: Tensor = inputs["targets"]
        return targets

    def owners(self, inputs: Inputs) -> Tensor:
        """The text that each masked token is in: `(masked tokens,)`."""
        positions: Tensor = inputs["positions"]
        return positions.div(inputs["input_ids"].shape[1], rounding_mode="floor")

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of each masked token."""
        embeddings = body.get_input_embeddings().weight  # type: ignore[operator]
        return F.cross_entropy(head(features, embeddings), targets, reduction="none")

    def new_head(self, encoder: TextEncoder) -> MaskedLMHead:
        return encoder.new_mlm_head()

    def collate(
        self,
        encoder: TextEncoder,
        micro_batch_size: int,
        *,
        training: bool = True,
        part_overhead: int | None = None,
        own_masks: int | None = None,
    ) -> Collate:
        """See `TaskObjective.collate`.

        Args:
            own_masks: a seed with which each text's masks are a function of the text, whatever
                batch it is in; None draws those of a batch from its generator.
        """
        reads_text(encoder, "masked language modelling")
        tokenizer = encoder.tokenizer
        if tokenizer.mask_token_id is None:
            raise UserError(
                f"encoder {encoder.name} has no mask token, so it cannot be trained by masked "
                "language modelling; use auxiliary=none with method=finetune, or another encoder"
            )
        return MaskedLMCollator(
            objective=self,
            pad_id=int(tokenizer.pad_token_id),
            mask_id=int(tokenizer.mask_token_id),
            vocabulary_size=len(tokenizer),
            special_ids=np.asarray(sorted(tokenizer.all_special_ids), dtype=np.int64),
            micro_batch_size=micro_batch_size,
            part_overhead=part_overhead,
            max_positions=encoder.max_positions,
            own_masks=own_masks,
        )


@dataclass(frozen=True)
class MaskedLMCollator:
    """Masks a batch's tokens and splits it into micro-batches.

    The masks are drawn over the tokens of the whole batch, before it is split and padded: they
    depend neither on the micro-batch size nor on padding. With `own_masks`, each text has its own,
    of at least one token, as an evaluation needs that is to be repeated.
    """

    objective: MaskedLM
    pad_id: int
    mask_id: int
    vocabulary_size: int
    special_ids: np.ndarray
    micro_batch_size: int
    part_overhead: int | None = None
    max_positions: int | None = None
    own_masks: int | None = None

    def __call__(self, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        originals = [np.asarray(row["input_ids"], dtype=np.int64) for row in rows]
        lengths = [len(ids) for ids in originals]
        ends = np.cumsum(lengths)[:-1]
        if self.own_masks is None:
            chosen, corrupted = self._corrupt(np.concatenate(originals), rng)
            chosen_by_row, corrupted_by_row = np.split(chosen, ends), np.split(corrupted, ends)
        else:
            seed = self.own_masks
            by_row = [self._corrupt(ids, _own_generator(seed, ids)) for ids in originals]
            chosen_by_row, corrupted_by_row = ([row[i] for row in by_row] for i in (0, 1))

        parts = []
        for members in split_by_length(lengths, self.micro_batch_size, self.part_overhead):
            own = [corrupted_by_row[i] for i in members]
            width = width_of(own, self.part_overhead, self.max_positions)
            inputs = pad(own, self.pad_id, width)
            inputs |= pad_token_types([rows[i] for i in members], width)
            places = [np.flatnonzero(chosen_by_row[i]) for i in members]
            positions = np.concatenate([row * width + p for row, p in enumerate(places)])
            if not len(positions):
                continue
            targets = np.concatenate(
                [originals[i][p] for i, p in zip(members, places, strict=True)]
            )
            inputs["positions"] = torch.from_numpy(positions)
            inputs["targets"] = torch.from_numpy(targets)
            parts.append(MicroBatch(inputs, units=len(targets), examples=len(members)))
        return Batch(parts, len(rows), *tokens_and_padding(parts))

    def _corrupt(self, flat: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Which of the tokens `(tokens,)` to predict, and the tokens as the body sees them."""
        allowed = ~np.isin(flat, self.special_ids)
        chosen = (rng.random(len(flat)) < self.objective.probability) & allowed
        action = rng.random(len(flat))
        replacement = rng.integers(0, self.vocabulary_size, len(flat))
        if not chosen.any():
            # A batch of very short texts: predict one token rather than divide by zero.
            candidates = np.flatnonzero(allowed) if allowed.any() else np.arange(len(flat))
            chosen[candidates[int(action[0] * len(candidates))]] = True
        masked = chosen & (action < self.objective.masked)
        randomised = chosen & ~masked & (action < self.objective.masked + self.objective.random)
        corrupted = np.where(masked, self.mask_id, np.where(randomised, replacement, flat))
        return chosen, corrupted


def _own_generator(seed: int, ids: np.ndarray) -> np.random.Generator:
    """A generator that the text alone decides."""
    return generator_for(seed, "masks", hashlib.sha256(ids.tobytes()).hexdigest())
