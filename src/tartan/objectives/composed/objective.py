"""Composes an objective of transform, representation and output (AANG, Dery et al., 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor, nn

from tartan.core.task import Batch
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import AtPositions, Collate, Row
from tartan.objectives.composed.output import Output
from tartan.objectives.composed.representation import Representation, no_positions
from tartan.objectives.composed.transform import Transform
from tartan.objectives.layout import Layout, Predicted, predicted_batch
from tartan.objectives.masked_lm import Rng, Vocabulary


@dataclass(frozen=True)
class Composed(AtPositions):
    """One objective of a space (see `TaskObjective`); a unit is a target of the output."""

    transform: Transform
    representation: Representation
    output: Output
    classes: int = 0  # of the end task's labels; 0 where they are not known yet
    shared_head: str = ""  # objectives with the same name here share one head

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return self.output.losses(body, head, features, targets)

    def new_head(self, encoder: TextEncoder) -> nn.Module:
        return self.output.new_head(encoder, self.classes)

    def collate(
        self,
        encoder: TextEncoder,
        micro_batch_size: int,
        *,
        training: bool = True,
        packed: bool = False,
        on_cpu: bool = False,
    ) -> Collate:
        vocabulary = Vocabulary.of(encoder, "a composed objective")
        # only the CPU's kernels take a mask of pairs in packed rows
        packed = packed and (on_cpu or not self.representation.restricts_attention)
        layout = Layout.of(encoder, micro_batch_size, packed, on_cpu)
        return partial(self._batch, layout, vocabulary)

    def _batch(
        self, layout: Layout, vocabulary: Vocabulary, rows: Sequence[Row], rng: Rng
    ) -> Batch:
        (view_rng,) = rng.spawn(1)
        first = layout.first_position
        texts = [self._text(row, first, vocabulary, rng, view_rng) for row in rows]
        return predicted_batch(layout, texts)

    def _text(
        self, row: Row, first_position: int, vocabulary: Vocabulary, token_rng: Rng, view_rng: Rng
    ) -> Predicted:
        """Return a transformed text: its tokens, followed by the view's queries."""
        output = self.output
        tokens = np.asarray(row["input_ids"], dtype=np.int64)
        chosen = self._choose(tokens, vocabulary, token_rng)
        corrupted = self.transform.corrupt(tokens, chosen, vocabulary, token_rng)
        positions, targets = output.targets(row, tokens, chosen)
        predicted = positions if output.predicts_tokens else no_positions()
        view = self.representation.view(len(tokens), predicted, view_rng)
        read_at = view.read_at if output.predicts_tokens else positions
        queries = np.full(len(view.queries), vocabulary.mask_id, dtype=np.int64)
        inputs: dict[str, np.ndarray] = {}
        if "token_type_ids" in row:
            types = np.asarray(row["token_type_ids"], dtype=np.int64)
            inputs["token_type_ids"] = np.concatenate([types, types[view.queries]])
        if view.pair_mask is not None:
            # with queries a text may exceed the body's positions, so they share those of the text
            places = np.concatenate([np.arange(len(tokens)), view.queries])
            inputs["position_ids"] = first_position + places
            inputs["pair_mask"] = view.pair_mask
        # without queries, so that the split does not depend on the representation
        length = len(tokens)
        return Predicted(np.concatenate([corrupted, queries]), inputs, read_at, targets, length)

    def _choose(self, tokens: np.ndarray, vocabulary: Vocabulary, rng: Rng) -> np.ndarray:
        """Choose the tokens to change, bool `(tokens,)`: at least one, where one is allowed."""
        allowed = ~np.isin(tokens, vocabulary.special_ids)
        allowed[[0, -1]] = False
        chosen = (rng.random(len(tokens)) < self.transform.probability) & allowed
        if not chosen.any() and allowed.any():
            candidates = np.flatnonzero(allowed)
            chosen[candidates[int(rng.random() * len(candidates))]] = True
        return chosen
