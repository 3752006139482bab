"""The interface of objectives, and the base of those that predict at positions of texts."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from tartan.core.task import Batch, Inputs, Objective
from tartan.errors import UserError
from tartan.kernels.packing import packed_states, pairwise_mask
from tartan.objectives.layout import is_packed

Row = Mapping[str, Any]
"""One example: the encoder's inputs, and `label` where it is labelled."""

Collate = Callable[[Sequence[Row], np.random.Generator], Batch]
"""Makes a batch of rows; the generator is the only source of randomness."""

E = TypeVar("E", contravariant=True)
_METHODS = ("features", "targets", "losses", "new_head", "collate")
_BODY_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


class Batching(TypedDict, total=False):
    """Where and how batches are used (see `TaskObjective.collate`)."""

    training: bool  # True unless given, the others False
    packed: bool
    on_cpu: bool


class TaskObjective(Objective, Protocol[E]):
    """An objective that trains an encoder of type `E`."""

    def new_head(self, encoder: E) -> nn.Module:
        """Return a new head for the task, to go on top of the encoder's body."""

    def collate(self, encoder: E, micro_batch_size: int, **how: Unpack[Batching]) -> Collate:
        """Return the function that makes batches of rows for this encoder, if the two fit.

        At most `micro_batch_size` examples go through the body at once. In `training`, examples are
        augmented. `packed` texts have no padding, where the encoder supports it; padded ones are
        split `on_cpu` into micro-batches of similar lengths.
        """


def is_objective(kind: type) -> bool:
    """Return whether a class is a dataclass with an objective's methods."""
    has_methods = all(callable(getattr(kind, name, None)) for name in _METHODS)
    return dataclasses.is_dataclass(kind) and has_methods


class AtPositions:
    """Predicts `targets` at `positions` of a micro-batch; a unit is one position (see `Objective`).

    The inputs `positions` and `targets` are `(n,)` both; positions are indices into all positions
    of the micro-batch, flattened.
    """

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return the hidden states at the positions: `(n, hidden)`."""
        return hidden_states(body, inputs).flatten(0, 1).index_select(0, inputs["positions"])

    def targets(self, inputs: Inputs) -> Tensor:
        targets: Tensor = inputs["targets"]
        return targets


def token_losses(body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each token to predict by a masked-LM head, `(n,)`."""
    embeddings = body.get_input_embeddings().weight  # type: ignore[operator]
    return F.cross_entropy(head(features, embeddings), targets, reduction="none")


def hidden_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """Return the last layer's states of a micro-batch, `(examples, positions, hidden)`."""
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
