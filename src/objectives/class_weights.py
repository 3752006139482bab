"""Weights of labels in the loss of a classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from src.configuration.checks import shown
from src.errors import UserError

_OPTION = "classifier.class_weights"


def class_weights(
    asked: object, labels: Sequence[str], counts: Sequence[int]
) -> tuple[float, ...] | None:
    """The weights in index order, scaled so that their mean over the training examples is 1.

    So scaled, the loss has the size of an unweighted one, and learning rates keep their meaning.

    Args:
        asked: `balanced` for weights inversely proportional to the labels' frequencies, a list of
            weights in the labels' order, a mapping from label to weight, or None for none.
        labels: label names in index order.
        counts: training examples of each.

    Raises:
        UserError: it is none of these, or does not fit the labels.
    """
    if asked is None:
        return None
    if asked == "balanced":
        given = [1 / count for count in counts]
    elif isinstance(asked, Mapping):
        given = _of_mapping({_name(key): value for key, value in asked.items()}, labels)
    elif isinstance(asked, Sequence) and not isinstance(asked, str):
        if len(asked) != len(labels):
            raise UserError(
                f"{_OPTION} has {len(asked)} weights, but there are {len(labels)} labels: "
                f"{_listed(labels)}"
            )
        given = [_weight(value, label) for value, label in zip(asked, labels, strict=True)]
    else:
        raise UserError(
            f"{_OPTION} must be balanced, null, a list of weights or a mapping {{LABEL: WEIGHT}}, "
            f"got {shown(asked)}"
        )
    mean = sum(w * n for w, n in zip(given, counts, strict=True)) / sum(counts)
    return tuple(weight / mean for weight in given)


@lru_cache(maxsize=8)
def on_device(weights: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """The weights as a tensor `(classes,)`, copied to the device once."""
    with torch.inference_mode(False):  # wherever it is first asked for, it must do for training
        return torch.tensor(weights, device=device, dtype=dtype)


def _of_mapping(given: Mapping[str, object], labels: Sequence[str]) -> list[float]:
    if set(given) != set(labels):
        wrong = sorted(set(given) ^ set(labels))
        raise UserError(
            f"{_OPTION} must give every label a weight and name no other ({_listed(wrong)}); the "
            f"labels are {_listed(labels)}"
        )
    return [_weight(given[label], label) for label in labels]


def _weight(value: object, label: str) -> float:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and number > 0):
        raise UserError(f"{_OPTION}: the weight of {label!r} must be positive, got {shown(value)}")
    return float(number)


def _name(key: object) -> str:
    """A label as the command line has it: `{1: 2, true: 3}` has no texts as keys."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels))
