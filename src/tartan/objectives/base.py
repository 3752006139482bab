"""The interface of objectives, and bases of those that classify examples or predict at positions.

An objective is `tartan.core.task.Objective` with a head and a collator.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from tartan.core.task import Batch, Inputs, Objective
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.kernels.packing import packed_states, pairwise_mask
from tartan.objectives.class_weights import ClassWeights, weights_on_device
from tartan.objectives.layout import Layout, is_packed, spans
from tartan.settings import Below1

Row = Mapping[str, Any]
"""One example: the encoder's inputs, and `label` where it is labelled."""

Collate = Callable[[Sequence[Row], np.random.Generator], Batch]
"""Makes a batch of rows; the generator is the only source of randomness."""

E = TypeVar("E", contravariant=True)
_METHODS = ("features", "targets", "owners", "losses", "new_head", "collate")
_BODY_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


class TaskObjective(Objective, Protocol[E]):
    """An objective that trains an encoder of type `E`."""

    def new_head(self, encoder: E) -> nn.Module:
        """Return a new head for the task, to go on top of the encoder's body."""

    def collate(
        self,
        encoder: E,
        micro_batch_size: int,
        *,
        training: bool = True,
        packed: bool = False,
        on_cpu: bool = False,
    ) -> Collate:
        """Return the function that makes batches of rows for this encoder, if the two fit.

        Args:
            encoder: the encoder.
            micro_batch_size: maximum number of examples that go through the body at once.
            training: whether to augment examples.
            packed: whether to pack texts into rows without padding, where the encoder supports it.
            on_cpu: whether to split padded texts for a CPU, into micro-batches of similar lengths.
        """


def is_objective(kind: type) -> bool:
    """Return whether a class is a dataclass with an objective's methods."""
    has_methods = all(callable(getattr(kind, name, None)) for name in _METHODS)
    return dataclasses.is_dataclass(kind) and has_methods


def check_objective(objective: Any, what: str) -> None:
    """Check that `what` is given an instance of an objective, whose fields go into checkpoints."""
    if isinstance(objective, type) or not is_objective(type(objective)):
        raise UserError(
            f"{what}: {objective!r} is no instance of a dataclass with the methods of "
            f"TaskObjective (src/tartan/objectives/base.py): {', '.join(_METHODS)}"
        )


class Supervised:
    """Predicts `labels` with cross-entropy; a unit is an example (see `core.task.Objective`).

    With class weights `w`, the loss of a unit with label `y` is `w_y` times its cross-entropy; that
    of a batch is their sum divided by the number of examples, not by the sum of the weights, so
    that it does not depend on how a batch is split.

    Attributes:
        class_weights: `balanced`, a list in the labels' order, or a weight for each label by name;
            None for equal ones. In training they are in index order, with mean 1 over the training
            examples (see `tartan.objectives.class_weights`).
        label_smoothing: share of a target that all labels get alike, in training.
    """

    class_weights: ClassWeights = None
    label_smoothing: Below1 = 0.0

    def targets(self, inputs: Inputs) -> Tensor:
        """Return the labels as indices, `(examples,)`."""
        labels: Tensor = inputs["labels"]
        return labels

    def owners(self, inputs: Inputs) -> Tensor:
        """Return each unit's example, which is the unit itself: `(examples,)`."""
        return torch.arange(len(inputs["labels"]), device=inputs["labels"].device)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each example, times its label's weight: `(examples,)`."""
        logits = head(features)
        losses = F.cross_entropy(
            logits, targets, reduction="none", label_smoothing=self.label_smoothing
        )
        if self.class_weights is None:
            return losses
        assert not isinstance(self.class_weights, str | Mapping), "resolved before training"
        # not the logits' type, nor an argument of `cross_entropy`, which wants them of that type
        dtype = torch.promote_types(logits.dtype, torch.float32)
        weights = weights_on_device(tuple(self.class_weights), logits.device, dtype)
        return losses * weights[targets]


class TextClassifier(Supervised, ABC):
    """Classifies texts from the state of their first token; a unit is a text."""

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return the first tokens' states in the last layer, `(examples, hidden)`."""
        states = hidden_states(body, inputs)
        return states[0].index_select(0, spans(inputs)[0]) if is_packed(inputs) else states[:, 0]

    def collate(
        self,
        encoder: TextEncoder,
        micro_batch_size: int,
        *,
        training: bool = True,
        packed: bool = False,
        on_cpu: bool = False,
    ) -> Collate:
        require_text_encoder(encoder, type(self).__name__)
        return partial(self.batch, Layout.of(encoder, micro_batch_size, packed, on_cpu))

    @abstractmethod
    def batch(self, layout: Layout, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        """Return the batch of rows, mostly by `labelled_batch`."""


class AtPositions:
    """Predicts `targets` at `positions` of a micro-batch; a unit is one position (see `Objective`).

    The inputs `positions` and `targets` are `(n,)` both; positions are indices into all positions
    of the micro-batch, flattened.
    """

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return the hidden states at the positions: `(n, hidden)`."""
        return hidden_states(body, inputs).flatten(0, 1).index_select(0, inputs["positions"])

    def targets(self, inputs: Inputs) -> Tensor:
        """Return the targets: `(n,)`."""
        targets: Tensor = inputs["targets"]
        return targets

    def owners(self, inputs: Inputs) -> Tensor:
        """Return the index of the text to which each position belongs: `(n,)`."""
        positions: Tensor = inputs["positions"]
        return torch.bucketize(positions, spans(inputs)[0], right=True) - 1


def token_losses(body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each token to predict by a masked-LM head, `(n,)`."""
    embeddings = body.get_input_embeddings().weight  # type: ignore[operator]
    return F.cross_entropy(head(features, embeddings), targets, reduction="none")


def hidden_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """Return the last layer's states of a micro-batch, `(examples, positions, hidden)`.

    `inputs` are the micro-batch's (see `Layout.parts`); a `pair_mask` is the attention mask.
    """
    if is_packed(inputs):
        if not isinstance(body, PreTrainedModel):  # e.g. one that torch.compile has wrapped
            raise UserError(
                f"a {type(body).__name__} cannot read packed texts, as only models of Transformers "
                'can; give TartanData(sizes={"packed": False})'
            )
        return packed_states(body, inputs)
    body_inputs = {name: inputs[name] for name in _BODY_INPUTS if name in inputs}
    if "pair_mask" in inputs:
        body_inputs["attention_mask"] = pairwise_mask(body, inputs["pair_mask"])
    states: Tensor = body(**body_inputs).last_hidden_state
    return states
