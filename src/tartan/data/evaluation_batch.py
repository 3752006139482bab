"""Reads batches of evaluations and predictions: the project's own, or those of a user's loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from tartan.core.task import Inputs, MicroBatch
from tartan.data.tokenise import Text
from tartan.errors import UserError

_FORM = 'a batch must be {"text": [...], "label": [...]} (and "text_pair")'


def labelled_batch(
    batch: Any, labels: Sequence[str], places: Tensor | None = None
) -> tuple[Sequence[Text] | Inputs, Tensor, Tensor | None]:
    """Return a batch's inputs, its labels, and which examples are unseen.

    A batch is a `MicroBatch`, whose labels are at `places` in `labels` where these are others; or a
    mapping with `label`, names as in the training data.

    Returns:
        The inputs of n examples; the indices of their labels, int64 `(n,)`; and whether each is
        absent from train, bool `(n,)`, or None where that is not known.
    """
    inputs = unlabelled_batch(batch)
    if isinstance(batch, MicroBatch):
        indices = batch.inputs.get("labels", batch.inputs.get("label"))
        if places is not None:
            indices = places.to(indices.device)[indices]
        return inputs, indices, batch.inputs.get("unseen")
    if not isinstance(batch, Mapping) or "label" not in batch:
        raise UserError(_FORM)
    names = batch["label"]
    names = names.tolist() if isinstance(names, Tensor) else names
    # numbers are names too: a data set may store its labels in another order
    words = [str(name).lower() if isinstance(name, bool) else str(name) for name in names]
    if unknown := sorted(set(words) - set(labels)):
        raise UserError(f"label {unknown[0]!r} is not one of those trained on: {list(labels)}")
    return inputs, torch.tensor([labels.index(word) for word in words]), None


def unlabelled_batch(batch: Any) -> Sequence[Text] | Inputs:
    """Return a batch's inputs in the form that the module's `forward` takes.

    A list is one of texts, or of rows with a `text`. Lists of tuples are refused: PyTorch's own
    collate function makes of rows `(text, label)` a list of all texts and one of all labels, and of
    two pairs of texts what could as well be two pairs.
    """
    if isinstance(batch, MicroBatch):
        return batch.inputs
    if isinstance(batch, pd.DataFrame):  # whose items are the names of its columns
        batch = batch.to_dict("list")
    if isinstance(batch, list) and batch and isinstance(batch[0], Mapping):
        names = [name for name in ("text", "text_pair") if name in batch[0]]
        batch = {name: [row[name] for row in batch] for name in names}
    if not isinstance(batch, Mapping):
        return _texts(batch)
    if "text" in batch:
        texts, pairs = _texts(batch["text"]), batch.get("text_pair")
        return texts if pairs is None else list(zip(texts, _texts(pairs), strict=True))
    if not {"input_ids", "images"} & set(batch):
        raise UserError(_FORM)
    mask = batch.get("attention_mask")
    if mask is not None and not bool(mask[:, 0].all()):  # the first token is read
        raise UserError('a batch is padded on the left; use padding_side="right"')
    return batch


def _texts(column: Any) -> list[str]:
    texts = [column] if isinstance(column, str) else list(column)
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"a batch holds something else than texts; {_FORM}")
    return texts
