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
from tartan.encoders.heads import MaskedLMHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import AtPositions, Collate, Row
from tartan.objectives.corruption import Corruption, Rng, Vocabulary
from tartan.objectives.layout import Layout, predicted_batch


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

    def __call__(self, rows: Sequence[Row], rng: Rng) -> Batch:
        originals = [np.asarray(row["input_ids"], dtype=np.int64) for row in rows]
        if self.mask_seed is None:
            flat = self._corrupt(np.concatenate(originals), rng)
            ends = np.cumsum([len(ids) for ids in originals])[:-1]
            chosen, corrupted = (np.split(values, ends) for values in flat)
        else:
            by_row = [self._corrupt(ids, _rng_of(self.mask_seed, ids)) for ids in originals]
            chosen, corrupted = map(list, zip(*by_row, strict=True))
        read_at = [np.flatnonzero(row) for row in chosen]
        targets = [ids[places] for ids, places in zip(originals, read_at, strict=True)]
        return predicted_batch(self.layout, rows, corrupted, read_at, targets)

    def _corrupt(self, flat: np.ndarray, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
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


def _rng_of(seed: int, ids: np.ndarray) -> Rng:
    """Return a generator that depends on the seed and the text alone."""
    return generator_for(seed, "masks", hashlib.sha256(ids.tobytes()).hexdigest())
