"""Texts to batches of a composed objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from src.core.task import Batch, MicroBatch
from src.objectives.base import Row
from src.objectives.composed.output.base import Output
from src.objectives.composed.representation.base import Representation, no_positions
from src.objectives.composed.transform.base import Transform
from src.objectives.layout import Layout, tokens_and_padding
from src.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class _Text:
    """One text on its way into a batch.

    Attributes:
        tokens: what the body reads, queries at the end.
        row: the rest of what it reads (see `Layout.parts`).
        length: tokens without the queries.
        read_at: where its predictions are read.
        targets: what is predicted there.
    """

    tokens: np.ndarray
    row: Row
    length: int
    read_at: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class ComposedCollator:
    """Chooses and changes tokens, and splits the batch into micro-batches.

    A text's draws depend on those before it in the batch, not on those after: the first rows of a
    batch are changed in the same way however many follow. What is drawn for the transform does not
    depend on the representation or the output, so that from the same seed objectives with the same
    transform see the same tokens, but for an output that arranges texts anew.

    Attributes:
        token_types: whether the body is told which of two texts a token belongs to.
    """

    transform: Transform
    representation: Representation
    output: Output
    vocabulary: Vocabulary
    layout: Layout
    token_types: bool

    def __call__(self, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        of_views, of_outputs = rng.spawn(2)
        texts = []
        for index in range(len(rows)):
            row = self.output.arranged(rows, index, self.vocabulary, of_outputs)
            texts.append(self._text(row, rng, of_views))
        hidden = {"pair_mask" in text.row for text in texts}
        assert len(hidden) <= 1, "a representation hides for all or for none"
        parts = []
        for part in self.layout.parts(
            [text.row for text in texts],
            [text.tokens for text in texts],
            # without queries: whatever the representation, the same texts share a part
            [text.length for text in texts],
        ):
            own, inputs = [texts[i] for i in part.members], part.inputs
            read_at = [start + t.read_at for start, t in zip(part.starts, own, strict=True)]
            targets = np.concatenate([text.targets for text in own])
            if not len(targets):
                continue
            inputs["positions"] = torch.from_numpy(np.concatenate(read_at))
            inputs["targets"] = torch.from_numpy(targets)
            parts.append(MicroBatch(inputs, units=len(targets), examples=len(own)))
        return Batch(parts, len(rows), *tokens_and_padding(parts))

    def _text(
        self, row: Row, of_tokens: np.random.Generator, of_views: np.random.Generator
    ) -> _Text:
        tokens = np.asarray(row["input_ids"], dtype=np.int64)
        chosen = self._chosen(tokens, of_tokens)
        seen = self.transform.corrupted(tokens, chosen, self.vocabulary, of_tokens)
        positions, targets = self.output.targets(row, tokens, chosen)
        hidden = positions if self.output.predicts_tokens else no_positions()
        view = self.representation.view(len(tokens), hidden, of_views)
        read_at = view.read_at if self.output.predicts_tokens else positions
        queries = np.full(len(view.queries), self.vocabulary.mask_id, dtype=np.int64)
        own: dict[str, np.ndarray] = {}
        if self.token_types and "token_type_ids" in row:
            types = np.asarray(row["token_type_ids"], dtype=np.int64)
            own["token_type_ids"] = np.concatenate([types, types[view.queries]])
        if view.pair_mask is not None:
            # queries make a text longer than the body has positions, but stand at some of the text
            places = np.concatenate([np.arange(len(tokens)), view.queries])
            own["position_ids"] = self.layout.first_position + places
            own["pair_mask"] = view.pair_mask
        return _Text(np.concatenate([seen, queries]), own, len(tokens), read_at, targets)

    def _chosen(self, tokens: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Choose the tokens to change, bool `(tokens,)`: at least one, where there is any.

        None of special ones, and neither the first nor the last, which have no neighbour from which
        a language model could predict them.
        """
        allowed = ~np.isin(tokens, self.vocabulary.special_ids)
        allowed[[0, -1]] = False
        chosen = (rng.random(len(tokens)) < self.transform.probability) & allowed
        if not chosen.any() and allowed.any():
            candidates = np.flatnonzero(allowed)
            chosen[candidates[int(rng.random() * len(candidates))]] = True
        return chosen
