"""Weights of labels in the loss of a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from src.configuration.options import Positive, checked
from src.errors import UserError

_OPTION = "classifier.class_weights"
ClassWeights: TypeAlias = (
    Literal["balanced"] | Sequence[Positive] | Mapping[str | bool | int | float, Positive] | None
)
"""As asked for: weights in the labels' order or by label; on a command line a label may look like a
number."""


@checked
def class_weights(
    class_weights: ClassWeights, labels: Sequence[str], counts: Sequence[int]
) -> tuple[float, ...] | None:
    """The weights in index order, scaled so that their mean over the training examples is 1.

    So scaled, the loss has the size of an unweighted one, and learning rates keep their meaning.

    Args:
        class_weights: `balanced` for weights inversely proportional to the labels' frequencies, a
            list of weights in the labels' order, a mapping from label to weight, or None for none.
        labels: label names in index order.
        counts: training examples of each.

    Raises:
        UserError: it is none of these, or does not fit the labels.
    """
    asked = class_weights
    if asked is None:
        return None
    if asked == "balanced":
        given = [1 / count for count in counts]
    elif isinstance(asked, Mapping):
        named = {_name(key): float(value) for key, value in asked.items()}
        if set(named) != set(labels):
            wrong = sorted(set(named) ^ set(labels))
            raise UserError(
                f"{_OPTION} must give every label a weight and name no other ({_listed(wrong)}); "
                f"the labels are {_listed(labels)}"
            )
        given = [named[label] for label in labels]
    else:
        if len(asked) != len(labels):
            raise UserError(
                f"{_OPTION} has {len(asked)} weights, but there are {len(labels)} labels: "
                f"{_listed(labels)}"
            )
        given = list(map(float, asked))
    mean = sum(w * n for w, n in zip(given, counts, strict=True)) / sum(counts)
    return tuple(weight / mean for weight in given)


@lru_cache(maxsize=8)
def on_device(weights: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """The weights as a tensor `(classes,)`, copied to the device once."""
    with torch.inference_mode(False):  # wherever it is first asked for, it must do for training
        return torch.tensor(weights, device=device, dtype=dtype)


def _name(key: object) -> str:
    """A label as the command line has it: `{1: 2, true: 3}` has no texts as keys."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels))
