"""Word embeddings whose backward pass adds to `.grad` only the rows that were looked up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from tartan.core.body import SharedBody

_in_place = False


@contextmanager
def in_place_row_gradients() -> Iterator[None]:
    """Let backward passes in this context add to `.grad` of each `RowGradientEmbedding`.

    Only for passes that add to `.grad` of the whole body: gradients that `torch.autograd.grad`
    returns would lack the embedding's.
    """
    global _in_place
    before, _in_place = _in_place, True
    try:
        yield
    finally:
        _in_place = before


class RowGradientEmbedding(nn.Embedding):
    """`nn.Embedding` whose backward pass on a CPU touches only the rows that were looked up.

    Torch's own fills a gradient of the table's size with zeros, adds the rows of a micro-batch, and
    adds it to `.grad`: for MiniLM 47 MB that are written, read and written again for a few rows.
    See `in_place_row_gradients` for when this applies.
    """

    @classmethod
    def of(cls, embedding: nn.Embedding) -> RowGradientEmbedding:
        """Return one with the parameter and settings of `embedding`, which has no `max_norm`."""
        rows, width = embedding.weight.shape
        made = cls(rows, width, embedding.padding_idx, _weight=embedding.weight)
        made.weight = embedding.weight  # the parameter itself, which a decoder may be tied to
        return made.train(embedding.training)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows `(..., width)` of the indices `input` `(...)`."""
        weight = self.weight
        if torch.is_grad_enabled() and weight.requires_grad and _supports_row_gradients(weight):
            rows: Tensor = _Lookup.apply(weight, input, self.padding_idx)  # type: ignore[no-untyped-call]
            return rows
        return super().forward(input)


class RowGradientBody(SharedBody):
    """A body whose backward passes use `in_place_row_gradients`."""

    def backward(
        self, loss: Tensor, into: Sequence[nn.Parameter], retain_graph: bool = False
    ) -> None:
        """See `SharedBody.backward`."""
        with in_place_row_gradients():
            super().backward(loss, into, retain_graph)


def use_row_gradients(body: Any) -> None:
    """Replace a Transformers model's word embeddings by a `RowGradientEmbedding`, in place.

    Embeddings that do more than look rows up stay as they are, and those of a model that does not
    say where they are.
    """
    try:
        embedding = body.get_input_embeddings()
    except NotImplementedError:
        return
    plain = type(embedding) is nn.Embedding and embedding.max_norm is None
    if plain and not embedding.scale_grad_by_freq and not embedding.sparse:
        with suppress(NotImplementedError):
            body.set_input_embeddings(RowGradientEmbedding.of(embedding))


def _supports_row_gradients(weight: Tensor) -> bool:
    # other devices write the table fast, and would add rows in no fixed order
    return weight.is_leaf and type(weight) is nn.Parameter and weight.device.type == "cpu"


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, indices: Tensor, padding_idx: int | None) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.weight, ctx.padding_idx = weight, padding_idx
        return F.embedding(indices, weight, padding_idx)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None]:
        (indices,) = ctx.saved_tensors
        weight: Tensor = ctx.weight
        rows, width = weight.shape
        padding_idx: int | None = ctx.padding_idx
        if not _in_place:
            ignored = -1 if padding_idx is None else padding_idx
            dense: Tensor = torch.ops.aten.embedding_dense_backward(
                gradient, indices, rows, ignored, False
            )
            return dense, None, None
        indices, gradient = indices.reshape(-1), gradient.reshape(-1, width)
        if padding_idx is not None:
            kept = (indices != padding_idx).nonzero().squeeze(1)
            indices, gradient = indices[kept], gradient[kept]
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        weight.grad.index_add_(0, indices, gradient.to(weight.dtype))
        return None, None, None
