"""Masked language modelling (Devlin et al., 2019), with logits only at positions to predict."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial

import numpy as np
from torch import Tensor, nn

from tartan.core.seeding import generator_for
from tartan.core.task import Batch
from tartan.encoders.heads import MaskedLMHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import AtPositions, Collate, Row, token_losses
from tartan.objectives.corruption import Corruption, Rng, Vocabulary
from tartan.objectives.layout import Layout, Predicted, predicted_batch


class MaskedLM(Corruption, AtPositions):
    """Predicts the chosen tokens, which are corrupted; a unit is a token to predict."""

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each token to predict, `(n,)`."""
        return token_losses(body, head, features, targets)

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

        With `mask_seed`, each text has masks of its own, at least one, which are the same in every
        evaluation; None draws the masks of a batch from its generator.
        """
        vocabulary = Vocabulary.of(encoder, "masked language modelling")
        layout = Layout.of(encoder, micro_batch_size, packed, on_cpu)
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
        else:
            drawn = [self._corrupt(ids, vocabulary, _rng_of(mask_seed, ids)) for ids in originals]
        texts = []
        for row, ids, (chosen, corrupted) in zip(rows, originals, drawn, strict=True):
            positions = np.flatnonzero(chosen)
            texts.append(Predicted(corrupted, row, positions, ids[positions]))
        return predicted_batch(layout, texts)

    def _corrupt(
        self, flat: np.ndarray, vocabulary: Vocabulary, rng: Rng
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose the tokens to predict, bool, and corrupt the tokens: `(tokens,)` both."""
        allowed = ~np.isin(flat, vocabulary.special_ids)
        chosen = (rng.random(len(flat)) < self.probability) & allowed
        drawn = self.draw(len(flat), vocabulary, rng)
        if not chosen.any():
            # in a batch of very short texts, predict one token rather than divide by zero
            candidates = np.flatnonzero(allowed) if allowed.any() else np.arange(len(flat))
            chosen[candidates[int(drawn[0][0] * len(candidates))]] = True
        return chosen, self.corrupted(flat, chosen, drawn, vocabulary)


def _rng_of(seed: int, ids: np.ndarray) -> Rng:
    """Return a generator that depends on the seed and the text alone."""
    return generator_for(seed, "masks", hashlib.sha256(ids.tobytes()).hexdigest())
