"""Texts to batches of a composed objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from src.core.task import Batch, MicroBatch
from src.objectives.base import Row
from src.objectives.composed.output.base import Output
from src.objectives.composed.representation.base import (
    Representation,
    View,
    no_positions,
)
from src.objectives.composed.transform.base import Transform
from src.objectives.layout import Layout, tokens_and_padding
from src.objectives.padding import pad, pad_rows, width_of
from src.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class _Text:
    """One text on its way into a batch; all but `targets` are by position, queries at the end."""

    tokens: np.ndarray
    types: np.ndarray | None
    view: View
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class ComposedCollator:
    """Chooses and changes tokens, and splits the batch into micro-batches.

    A text's draws depend on those before it in the batch, not on those after: the first rows of a
    batch are changed in the same way however many follow. What is drawn for the transform does not
    depend on the representation or the output, so that from the same seed objectives with the same
    transform see the same tokens, but for an output that arranges texts anew.

    Attributes:
        first_position: the number that the body gives to a text's first position.
        token_types: whether the body is told which of two texts a token belongs to.
    """

    transform: Transform
    representation: Representation
    output: Output
    vocabulary: Vocabulary
    layout: Layout
    first_position: int
    token_types: bool

    def __call__(self, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        of_views, of_outputs = rng.spawn(2)
        texts = []
        for index in range(len(rows)):
            row = self.output.arranged(rows, index, self.vocabulary, of_outputs)
            texts.append(self._text(row, rng, of_views))
        # without queries: whatever the representation, the same texts share a part
        lengths = [len(text) - len(text.view.queries) for text in texts]
        parts = []
        for members in self.layout.split(lengths):
            part = self._micro_batch([texts[i] for i in members])
            if part.units:
                parts.append(part)
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
        if not self.output.predicts_tokens:
            view = View(positions, view.attends, view.queries)
        queries = np.full(len(view.queries), self.vocabulary.mask_id, dtype=np.int64)
        types = None
        if self.token_types and "token_type_ids" in row:
            types = np.asarray(row["token_type_ids"], dtype=np.int64)
            types = np.concatenate([types, types[view.queries]])
        return _Text(np.concatenate([seen, queries]), types, view, targets)

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

    def _micro_batch(self, texts: Sequence[_Text]) -> MicroBatch:
        # queries make a text longer than the body has positions, but stand at positions of the text
        tokens = [text.tokens for text in texts]
        width = width_of(tokens, self.layout.max_positions)
        inputs = pad(tokens, self.layout.pad_id, width)
        types = [text.types for text in texts if text.types is not None]
        if types:
            inputs["token_type_ids"] = pad_rows(types, 0, width)
        if any(text.view.attends is not None for text in texts):
            attends = np.zeros((len(texts), width, width), dtype=bool)
            attends[:, :, 0] = True  # padding must attend to something, and nobody attends to it
            for row, text in enumerate(texts):
                assert text.view.attends is not None, "a representation hides for all or for none"
                attends[row, : len(text), : len(text)] = text.view.attends
            inputs["attends"] = torch.from_numpy(attends)
            inputs["position_ids"] = pad_rows(
                [self.first_position + _places(text) for text in texts], self.first_position, width
            )
        read_at = [row * width + text.view.read_at for row, text in enumerate(texts)]
        targets = np.concatenate([text.targets for text in texts])
        inputs["positions"] = torch.from_numpy(np.concatenate(read_at))
        inputs["targets"] = torch.from_numpy(targets)
        return MicroBatch(inputs, units=len(targets), examples=len(texts))


def _places(text: _Text) -> np.ndarray:
    """The position in the text at which each token stands, from 0."""
    length = len(text) - len(text.view.queries)
    return np.concatenate([np.arange(length), text.view.queries])
