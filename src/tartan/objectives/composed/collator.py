"""Makes batches of texts for a composed objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tartan.core.task import Batch
from tartan.objectives.base import Row
from tartan.objectives.composed.output.base import Output
from tartan.objectives.composed.representation.base import Representation, no_positions
from tartan.objectives.composed.transform.base import Transform
from tartan.objectives.layout import Layout, predicted_batch
from tartan.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class _Text:
    """A transformed text.

    Attributes:
        tokens: ids of the transformed tokens, followed by the queries, `(tokens,)`.
        row: the body's other inputs (see `Layout.parts`).
        length: number of tokens without the queries.
        read_at: positions whose states predict the targets, `(n,)`.
        targets: the targets, `(n,)`.
    """

    tokens: np.ndarray
    row: Row
    length: int
    read_at: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class ComposedCollator:
    """Transforms a batch's texts and splits it into micro-batches.

    A text's random draws do not depend on the texts after it in the batch. The transform's draws
    depend neither on the representation nor on the output: with the same seed, objectives with the
    same transform have the same tokens, unless an output rearranges texts.

    Attributes:
        transform: the objective's transform.
        representation: the objective's representation.
        output: the objective's output.
        vocabulary: the encoder's vocabulary.
        layout: splits a batch, and makes the body's inputs.
        token_types: whether the body's inputs say which of two texts a token belongs to.
    """

    transform: Transform
    representation: Representation
    output: Output
    vocabulary: Vocabulary
    layout: Layout
    token_types: bool

    def __call__(self, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        view_rng, output_rng = rng.spawn(2)
        texts = []
        for index in range(len(rows)):
            row = self.output.arrange(rows, index, self.vocabulary, output_rng)
            texts.append(self._transform(row, rng, view_rng))
        masked = {"pair_mask" in text.row for text in texts}
        assert len(masked) <= 1, "a representation masks all texts or none"
        return predicted_batch(
            self.layout,
            [text.row for text in texts],
            [text.tokens for text in texts],
            [text.read_at for text in texts],
            [text.targets for text in texts],
            # without queries, so that the split does not depend on the representation
            lengths=[text.length for text in texts],
        )

    def _transform(
        self, row: Row, token_rng: np.random.Generator, view_rng: np.random.Generator
    ) -> _Text:
        tokens = np.asarray(row["input_ids"], dtype=np.int64)
        chosen = self._choose(tokens, token_rng)
        corrupted = self.transform.corrupt(tokens, chosen, self.vocabulary, token_rng)
        positions, targets = self.output.targets(row, tokens, chosen)
        predicted = positions if self.output.predicts_tokens else no_positions()
        view = self.representation.view(len(tokens), predicted, view_rng)
        read_at = view.read_at if self.output.predicts_tokens else positions
        queries = np.full(len(view.queries), self.vocabulary.mask_id, dtype=np.int64)
        inputs: dict[str, np.ndarray] = {}
        if self.token_types and "token_type_ids" in row:
            types = np.asarray(row["token_type_ids"], dtype=np.int64)
            inputs["token_type_ids"] = np.concatenate([types, types[view.queries]])
        if view.pair_mask is not None:
            # with queries a text may exceed the body's positions, so they share those of the text
            places = np.concatenate([np.arange(len(tokens)), view.queries])
            inputs["position_ids"] = self.layout.first_position + places
            inputs["pair_mask"] = view.pair_mask
        return _Text(np.concatenate([corrupted, queries]), inputs, len(tokens), read_at, targets)

    def _choose(self, tokens: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Choose the tokens to change, bool `(tokens,)`: at least one, where one is allowed.

        Not allowed are special tokens, and the first and the last token, which have no neighbour
        from which a language model could predict them.
        """
        allowed = ~np.isin(tokens, self.vocabulary.special_ids)
        allowed[[0, -1]] = False
        chosen = (rng.random(len(tokens)) < self.transform.probability) & allowed
        if not chosen.any() and allowed.any():
            candidates = np.flatnonzero(allowed)
            chosen[candidates[int(rng.random() * len(candidates))]] = True
        return chosen
