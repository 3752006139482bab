"""Objectives composed of a transform, a representation and an output (AANG, Dery et al., 2023)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Unpack

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.core.task import Batch
from tartan.encoders.heads import ClassifierHead
from tartan.encoders.text_encoder import TextEncoder
from tartan.objectives.base import AtPositions, Batching, Collate, Row, token_losses
from tartan.objectives.layout import Layout, Predicted, predicted_batch
from tartan.objectives.masked_lm import Array, Corruption, Rng, Vocabulary
from tartan.settings import Below1, Checked, Share

_NONE: Array = np.zeros(0, dtype=np.int64)  # of the positions


@dataclass(frozen=True)
class Transform(Checked, ABC):
    """Changes chosen tokens of a text, which an output may predict.

    Attributes:
        probability: share of the tokens that are chosen (paper: 0.15).
    """

    probability: Share = 0.15

    @abstractmethod
    def corrupt(self, tokens: Array, chosen: Array, vocabulary: Vocabulary, rng: Rng) -> Array:
        """Return a copy of the tokens with the `chosen` ones, bool, changed: all `(tokens,)`."""


class Unchanged(Transform):
    """Keeps every token; the chosen ones are only predicted, as in language modelling."""

    def corrupt(self, tokens: Array, chosen: Array, vocabulary: Vocabulary, rng: Rng) -> Array:
        return tokens


class Mask(Transform):
    """Replaces every chosen token by the mask token."""

    def corrupt(self, tokens: Array, chosen: Array, vocabulary: Vocabulary, rng: Rng) -> Array:
        return np.where(chosen, vocabulary.mask_id, tokens)


class Replace(Transform):
    """Replaces every chosen token by one that is drawn uniformly from the vocabulary."""

    def corrupt(self, tokens: Array, chosen: Array, vocabulary: Vocabulary, rng: Rng) -> Array:
        return np.where(chosen, rng.integers(0, vocabulary.size, len(tokens)), tokens)


class Bert(Corruption, Transform):
    """Replaces a chosen token by the mask token or a random one, or keeps it."""

    def corrupt(self, tokens: Array, chosen: Array, vocabulary: Vocabulary, rng: Rng) -> Array:
        return self.corrupted(tokens, chosen, self.draw(len(tokens), vocabulary, rng), vocabulary)


@dataclass(frozen=True)
class View:
    """How the body reads a text: its attention, and the positions whose states predict tokens."""

    read_at: Array  # for each token to predict, the position that predicts it
    # True where the row's position attends to the column's, bool `(positions, positions)` of the
    # text and its queries; None where all attend to all
    pair_mask: Array | None = None
    # for each mask token to append (a query), the position in the text that it stands for
    queries: Array = field(default_factory=lambda: _NONE)


@dataclass(frozen=True)
class Representation(ABC):
    """Decides which positions attend to which, and which position's state predicts a token."""

    sees_both_sides: ClassVar[bool] = False  # whether positions attend to both sides of them
    restricts_attention: ClassVar[bool] = True  # whether its views have a `pair_mask`

    @abstractmethod
    def view(self, length: int, predicted: Array, rng: Rng) -> View:
        """Return how the body reads a text of `length` tokens, special ones included.

        `predicted` are the positions of the tokens to predict, ascending, without the first and the
        last position. `rng` is the only source of randomness.
        """


class Bidirectional(Representation):
    """Predicts a token at its own position, as BERT does, which sees the transformed token."""

    sees_both_sides = True
    restricts_attention = False

    def view(self, length: int, predicted: Array, rng: Rng) -> View:
        return View(read_at=predicted)


class LeftToRight(Representation):
    """Predicts a token at the position before it, as a language model does."""

    def view(self, length: int, predicted: Array, rng: Rng) -> View:
        return View(read_at=predicted - 1, pair_mask=np.tri(length, dtype=bool))


class RightToLeft(Representation):
    """Predicts a token at the position after it, as a backward language model does."""

    def view(self, length: int, predicted: Array, rng: Rng) -> View:
        return View(read_at=predicted + 1, pair_mask=np.tri(length, dtype=bool).T)


@dataclass(frozen=True)
class RandomFactorised(Checked, Representation):
    """Keeps a random share of the pairs of positions that attend, and hides the predicted tokens.

    Removing pairs at random does not hide a token: over several layers it reaches its own position
    through others. Therefore, as in XLNet (Yang et al., 2019), the predicted tokens come last in a
    random factorisation order, and each is predicted at a mask token of its own (a query), which
    attends to itself. Tokens and queries attend to tokens that are not predicted; predicted tokens
    and queries also to predicted tokens earlier in the order; all to the first position.

    Attributes:
        kept: share of the pairs that is kept (paper's code: 0.6).
    """

    sees_both_sides = True
    kept: Share = 0.6

    def view(self, length: int, predicted: Array, rng: Rng) -> View:
        count = len(predicted)
        total = length + count
        order = np.zeros(total, dtype=np.int64)  # in the factorisation; 0: not predicted
        order[predicted] = 1 + rng.permutation(count)
        order[length:] = order[predicted]
        kept = rng.random((total, total), dtype=np.float32) < self.kept
        itself = np.eye(total, dtype=bool)
        before = (order[None, :] == 0) | (order[None, :] < order[:, None])
        pair_mask = before & kept & ~itself
        pair_mask[:, length:] = False  # only a query itself attends to it
        pair_mask |= itself & (np.arange(total) >= length)
        pair_mask[:, 0] = True
        return View(read_at=length + np.arange(count), pair_mask=pair_mask, queries=predicted)


@dataclass(frozen=True)
class Output(ABC):
    """Decides what is predicted from a text, by a head that all objectives of an output share."""

    needs_labels: ClassVar[bool] = False  # whether it predicts the end task's label
    needs_both_sides: ClassVar[bool] = False  # whether states must attend to both sides
    predicts_tokens: ClassVar[bool] = False

    @abstractmethod
    def targets(self, row: Row, tokens: Array, chosen: Array) -> tuple[Array, Array]:
        """Return positions in a text, ascending, and the target at each: `(n,)` both.

        `tokens` are those before the transform, of which some are `chosen`, bool.
        """

    @abstractmethod
    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        """Return a new head, where the end task has `classes` labels."""

    @abstractmethod
    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each target, `(n,)`."""


class Denoise(Output):
    """Predicts the chosen tokens, with a masked-LM head tied to the word embeddings."""

    predicts_tokens = True

    def targets(self, row: Row, tokens: Array, chosen: Array) -> tuple[Array, Array]:
        positions = np.flatnonzero(chosen)
        return positions, tokens[positions]

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return encoder.new_mlm_head()

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return token_losses(body, head, features, targets)


@dataclass(frozen=True)
class EndLabel(Checked, Output):
    """Predicts the end task's label of a transformed text, with a head apart from the task's.

    Attributes:
        dropout: dropout probability of the head.
    """

    needs_labels = True
    needs_both_sides = True
    dropout: Below1 = 0.1

    def targets(self, row: Row, tokens: Array, chosen: Array) -> tuple[Array, Array]:
        return np.zeros(1, dtype=np.int64), np.asarray([row["label"]], dtype=np.int64)

    def new_head(self, encoder: TextEncoder, classes: int) -> nn.Module:
        return ClassifierHead(encoder.hidden_size, classes, self.dropout)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(head(features), targets, reduction="none")


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
        self, encoder: TextEncoder, micro_batch_size: int, **how: Unpack[Batching]
    ) -> Collate:
        vocabulary = Vocabulary.of(encoder, "a composed objective")
        if self.representation.restricts_attention and not how.get("on_cpu"):
            how["packed"] = False  # only the CPU's kernels take a mask of pairs in packed rows
        return partial(self._batch, Layout.of(encoder, micro_batch_size, **how), vocabulary)

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
        predicted = positions if output.predicts_tokens else _NONE
        view = self.representation.view(len(tokens), predicted, view_rng)
        read_at = view.read_at if output.predicts_tokens else positions
        queries = np.full(len(view.queries), vocabulary.mask_id, dtype=np.int64)
        inputs: dict[str, Array] = {}
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

    def _choose(self, tokens: Array, vocabulary: Vocabulary, rng: Rng) -> Array:
        """Choose the tokens to change, bool `(tokens,)`: at least one, where one is allowed."""
        allowed = ~np.isin(tokens, vocabulary.special_ids)
        allowed[[0, -1]] = False
        chosen = (rng.random(len(tokens)) < self.transform.probability) & allowed
        if not chosen.any() and allowed.any():
            candidates = np.flatnonzero(allowed)
            chosen[candidates[int(rng.random() * len(candidates))]] = True
        return chosen
