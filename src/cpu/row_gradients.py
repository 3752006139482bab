"""Embeddings whose gradient is added to `.grad` row by row, where a pass may do that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from src.core.body import WholeBody

_in_place = False


@contextmanager
def rows_in_place() -> Iterator[None]:
    """A backward pass inside adds to `.grad` of every `RowEmbedding` that it reaches.

    Only for one that adds to all of the body's `.grad`: gradients that are returned, by
    `torch.autograd.grad`, would lack the embedding's.
    """
    global _in_place
    before, _in_place = _in_place, True
    try:
        yield
    finally:
        _in_place = before


class RowEmbedding(nn.Embedding):
    """`nn.Embedding` that on a CPU spares a micro-batch a gradient of the table's size.

    Torch's own makes one of zeros, adds a batch's rows, and adds it to `.grad`: 47 MB that are
    written, read and written again for the few rows that a micro-batch of MiniLM touches.
    """

    @classmethod
    def of(cls, embedding: nn.Embedding) -> RowEmbedding:
        """One with the same parameter and settings as `embedding`, which has no `max_norm`."""
        rows, width = embedding.weight.shape
        made = cls(rows, width, embedding.padding_idx, _weight=embedding.weight)
        made.weight = embedding.weight  # the parameter itself, which a decoder may be tied to
        return made.train(embedding.training)

    def forward(self, input: Tensor) -> Tensor:
        """Rows `(..., width)` of the indices `input` `(...)`."""
        weight = self.weight
        if torch.is_grad_enabled() and weight.requires_grad and _adds_rows(weight):
            rows: Tensor = _Rows.apply(weight, input, self.padding_idx)  # type: ignore[no-untyped-call]
            return rows
        return super().forward(input)


class RowAddingBody(WholeBody):
    """A body whose backward passes add to all that they reach: a `RowEmbedding` may add rows."""

    def backward(
        self, loss: Tensor, into: Sequence[nn.Parameter], retain_graph: bool = False
    ) -> None:
        """See `Body.backward`."""
        with rows_in_place():
            super().backward(loss, into, retain_graph)


def use_row_embedding(body: Any) -> None:
    """Put a `RowEmbedding` in the place of a Transformers model's word embeddings.

    Those that do more than look rows up stay.
    """
    embedding = body.get_input_embeddings()
    plain = type(embedding) is nn.Embedding and embedding.max_norm is None
    if plain and not embedding.scale_grad_by_freq and not embedding.sparse:
        body.set_input_embeddings(RowEmbedding.of(embedding))


def _adds_rows(weight: Tensor) -> bool:
    # elsewhere the table is written in no time, and rows are added in no fixed order
    return weight.is_leaf and type(weight) is nn.Parameter and weight.device.type == "cpu"


class _Rows(torch.autograd.Function):
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
            none = -1 if padding_idx is None else padding_idx
            dense: Tensor = torch.ops.aten.embedding_dense_backward(
                gradient, indices, rows, none, False
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
