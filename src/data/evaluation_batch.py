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
        batch: a `MicroBatch`; or a mapping of `text` and `label`, as in the training data; or one
            of a tokenizer's tensors and `labels`, names or places in `labels`.
        labels: names in index order.

    Raises:
        UserError: it is none of these, or a label is unknown.
    """
    inputs = unlabelled_batch(batch)
    if isinstance(batch, MicroBatch):
        own = batch.inputs
        return inputs, own.get("labels", own.get("label")), own.get("unseen")
    if not isinstance(batch, Mapping) or not {"label", "labels"} & set(batch):
        raise UserError(f"a batch of an evaluation must be {_FORMS}")
    if "labels" in batch and isinstance(batch["labels"], Tensor) and not _are_numbers(labels):
        return inputs, _checked_places(batch["labels"], labels), None
    return inputs, _places(batch["label" if "label" in batch else "labels"], labels), None


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


def _places(given: Any, labels: Sequence[str]) -> Tensor:
    """Places in `labels` of what are names, or numbers where labels are numbers.

    A data set that stores its labels as numbers may have them in another order.
    """
    values = given.tolist() if isinstance(given, Tensor) else given
    names = [str(label).lower() if isinstance(label, bool) else str(label) for label in values]
    unknown = sorted(set(names) - set(labels))
    if unknown:
        raise UserError(f"label {unknown[0]!r} is not one of those trained on: {list(labels)}")
    return torch.tensor([labels.index(name) for name in names])


def _are_numbers(labels: Sequence[str]) -> bool:
    return all(name.removeprefix("-").isdigit() for name in labels)


def _checked_places(given: Tensor, labels: Sequence[str]) -> Tensor:
    outside = given[(given < 0) | (given >= len(labels))]
    if len(outside):
        raise UserError(f"label {int(outside[0])} is no place in the labels: {list(labels)}")
    return given
