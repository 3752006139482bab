"""The batches of evaluations and predictions: our own, or those of a user's loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from src.core.task import Inputs, MicroBatch
from src.data.inputs import Text
from src.errors import UserError

_FORMS = (
    '{"text": [...], "label": [...]} (and "text_pair"), or what a tokenizer makes of texts with '
    '"labels" beside it'
)


def labelled_batch(
    batch: Any, labels: Sequence[str]
) -> tuple[Sequence[Text] | Inputs, Tensor, Tensor | None]:
    """Inputs, labels as indices `(n,)`, and which inputs are absent from train `(n,)`, if known.

    Args:
        batch: a `MicroBatch`, or a mapping of `text` and `label` (names or indices), or one of a
            tokenizer's tensors and `labels`.
        labels: names in index order.

    Raises:
        UserError: it is none of these, or a label is unknown.
    """
    inputs = unlabelled_batch(batch)
    named = batch.inputs if isinstance(batch, MicroBatch) else batch
    given = None
    if isinstance(named, Mapping):
        given = named.get("labels", named.get("label"))
    if given is None:
        raise UserError(f"a batch of an evaluation must be {_FORMS}")
    unseen = named.get("unseen")
    return inputs, _indices(given, labels), unseen


def unlabelled_batch(batch: Any) -> Sequence[Text] | Inputs:
    """Return what the module's `forward` takes.

    Raises:
        UserError: there are neither texts in it nor tensors.
    """
    if isinstance(batch, MicroBatch):
        return batch.inputs
    if isinstance(batch, str):
        return [batch]
    if isinstance(batch, Mapping):
        if "text" in batch:
            texts, pairs = batch["text"], batch.get("text_pair")
            return list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        if "input_ids" in batch or "images" in batch:
            return batch
    elif isinstance(batch, list | tuple) and batch:
        return list(batch)
    raise UserError(f"a batch must be a list of texts, {_FORMS}; got {type(batch).__name__}")


def _indices(given: Any, labels: Sequence[str]) -> Tensor:
    if isinstance(given, Tensor):
        return given
    names = [str(label).lower() if isinstance(label, bool) else str(label) for label in given]
    unknown = sorted(set(names) - set(labels))
    if unknown:
        raise UserError(f"label {unknown[0]!r} is not one of those trained on: {list(labels)}")
    return torch.tensor([labels.index(name) for name in names])
