"""Weights of labels in a classifier's loss."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import torch
import yaml
from pydantic import BeforeValidator
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from tartan.errors import UserError
from tartan.settings import Positive, checked

log = logging.getLogger(__name__)


def parsed(value: Any) -> Any:
    """Return class weights; a mapping that a command line had to quote, as a string, is read."""
    is_mapping = isinstance(value, str) and value.lstrip().startswith("{")
    return yaml.safe_load(value) if is_mapping else value


ClassWeights: TypeAlias = (
    Literal["balanced"]
    | Sequence[Positive]
    | Annotated[Mapping[str | bool | int | float, Positive], BeforeValidator(parsed)]
    | None
)
"""The option's values: weights in the labels' order, or by label; a command line may turn labels
into numbers or booleans, and the mapping into a string.
"""


@checked
def class_weights(
    class_weights: ClassWeights,
    labels: Sequence[str],
    counts: Sequence[int],
    option: str = "classifier.class_weights",
) -> tuple[float, ...] | None:
    """Return the weights in index order, scaled so that their mean over training examples is 1.

    With this scale the loss is as large as an unweighted one, so that the same learning rates suit.

    Args:
        class_weights: `balanced` for weights inversely proportional to the labels' frequencies, a
            list of weights in the labels' order, a mapping from label to weight, or None for none.
        labels: label names in index order.
        counts: number of training examples of each label.
        option: what sets the weights, for messages.
    """
    weights = parsed(class_weights)
    if weights is None:
        return None
    if weights == "balanced":
        indices = np.arange(len(labels))
        by_index = compute_class_weight(weights, classes=indices, y=np.repeat(indices, counts))
        weights = by_index.tolist()
    elif len(weights) != len(labels):
        raise UserError(f"{option} has {len(weights)} weights; the labels are {list(labels)}")
    elif isinstance(weights, Mapping):
        by_label = _by_label(weights, labels)
        if set(by_label) != set(labels):
            raise UserError(f"{option} weights {sorted(by_label)}; the labels are {list(labels)}")
        weights = [by_label[label] for label in labels]
    else:
        log.warning("%s by label: %s", option, dict(zip(labels, weights, strict=True)))
    mean = sum(w * n for w, n in zip(weights, counts, strict=True)) / sum(counts)
    return tuple(weight / mean for weight in weights)


@lru_cache(maxsize=8)
def weights_on_device(
    weights: tuple[float, ...], device: torch.device, dtype: torch.dtype
) -> Tensor:
    """Return the weights as a tensor `(classes,)`, which is copied to the device once."""
    with torch.inference_mode(False):  # the cached tensor may be used in training later
        return torch.tensor(weights, device=device, dtype=dtype)


def _by_label(weights: Mapping[Any, float], labels: Sequence[str]) -> dict[str, float]:
    """Return weights by label, of keys that YAML may have turned into numbers or booleans."""
    by_fold = {label.casefold(): label for label in labels}
    names = {key: str(key).lower() if isinstance(key, bool) else str(key) for key in weights}
    return {
        name if name in labels else by_fold.get(name.casefold(), name): float(weights[key])
        for key, name in names.items()
    }
