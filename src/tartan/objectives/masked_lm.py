"""Masked language modelling (Devlin et al., 2019), with logits only at positions to predict."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.core.seeding import generator_for
from tartan.core.task import Batch
from tartan.encoders.masked_lm_head import MaskedLMHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.at_positions import AtPositions
from tartan.objectives.base import Collate, Row
from tartan.objectives.corruption import Corruption
from tartan.objectives.layout import Layout, predicted_batch
from tartan.objectives.vocabulary import Vocabulary


class MaskedLM(Corruption, AtPositions):
    """Predicts the chosen tokens, which are corrupted; a unit is a token to predict."""

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each token to predict, `(n,)`."""
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
        packed: bool = False,
        on_cpu: bool = False,
        mask_seed: int | None = None,
    ) -> Collate:
        """See `TaskObjective.collate`.

        Args:
            mask_seed: seed of masks that depend on the text alone, not on its batch; None draws the
                masks of a batch from its generator.
        """
        return MaskedLMCollator(
            objective=self,
            vocabulary=Vocabulary.of(encoder, "masked language modelling"),
            layout=Layout.of(encoder, micro_batch_size, packed, on_cpu),
            mask_seed=mask_seed,
        )


@dataclass(frozen=True)
class MaskedLMCollator:
    """Masks a batch's tokens and splits it into micro-batches.

    Masks are drawn for the tokens of the whole batch before it is split, so that they depend
    neither on the micro-batch size nor on padding. With `mask_seed`, each text has masks of its
    own, at least one, which are the same in every evaluation.
    """

    objective: MaskedLM
    vocabulary: Vocabulary
    layout: Layout
    mask_seed: int | None = None

    def __call__(self, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        originals = [np.asarray(row["input_ids"], dtype=np.int64) for row in rows]
        ends = np.cumsum([len(ids) for ids in originals])[:-1]
        if self.mask_seed is None:
            chosen, corrupted = self._corrupt(np.concatenate(originals), rng)
            chosen_by_row, corrupted_by_row = np.split(chosen, ends), np.split(corrupted, ends)
        else:
            seed = self.mask_seed
            by_row = [self._corrupt(ids, _own_generator(seed, ids)) for ids in originals]
            chosen_by_row, corrupted_by_row = ([row[i] for row in by_row] for i in (0, 1))

        places = [np.flatnonzero(chosen) for chosen in chosen_by_row]
        targets = [ids[own] for ids, own in zip(originals, places, strict=True)]
        return predicted_batch(self.layout, rows, corrupted_by_row, places, targets)

    def _corrupt(self, flat: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Choose the tokens to predict, bool, and corrupt the tokens: `(tokens,)` both."""
        objective, vocabulary = self.objective, self.vocabulary
        allowed = ~np.isin(flat, vocabulary.special_ids)
        chosen = (rng.random(len(flat)) < objective.probability) & allowed
        drawn = objective.draw(len(flat), vocabulary, rng)
        if not chosen.any():
            # in a batch of very short texts, predict one token rather than divide by zero
            candidates = np.flatnonzero(allowed) if allowed.any() else np.arange(len(flat))
            chosen[candidates[int(drawn[0][0] * len(candidates))]] = True
        return chosen, objective.corrupted(flat, chosen, drawn, vocabulary)


def _own_generator(seed: int, ids: np.ndarray) -> np.random.Generator:
    """Return a generator that depends on the seed and the text alone."""
    return generator_for(seed, "masks", hashlib.sha256(ids.tobytes()).hexdigest())
