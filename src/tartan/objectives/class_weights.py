"""Computes the weights of labels in a classifier's loss."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import torch
import yaml
from pydantic import BeforeValidator
from torch import Tensor

from tartan.configuration.options import Positive, checked
from tartan.errors import UserError
from tartan.files.plain import parse_yaml

log = logging.getLogger(__name__)


def parsed(given: Any) -> Any:
    """Return class weights as the option has them: a mapping that came as a string is read.

    A command line needs quotes around labels with letters beyond a to z, which make it a string.
    """
    if not isinstance(given, str) or not given.lstrip().startswith("{"):
        return given
    try:
        return parse_yaml(given)
    except (ValueError, yaml.YAMLError):
        return given  # which is refused as what it is


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
        option: what gives the weights, for messages.

    Raises:
        UserError: the weights do not fit the labels.
    """
    class_weights = parsed(class_weights)
    if class_weights is None:
        return None
    if class_weights == "balanced":
        given = [1 / count for count in counts]
    elif isinstance(class_weights, Mapping):
        named = _by_label(class_weights, labels)
        if set(named) != set(labels):
            missing, unknown = sorted(set(labels) - set(named)), sorted(set(named) - set(labels))
            found = [f"missing {_listed(missing)}"] if missing else []
            found += [f"unknown {_listed(unknown)}"] if unknown else []
            raise UserError(
                f"{option} must give a weight to each label and no other: {', '.join(found)}; the "
                f"labels are {_listed(labels)}"
            )
        given = [named[label] for label in labels]
    else:
        if len(class_weights) != len(labels):
            raise UserError(
                f"{option} has {len(class_weights)} weights, but there are {len(labels)} labels: "
                f"{_listed(labels)}"
            )
        given = list(map(float, class_weights))
        shown = ", ".join(f"{name!r} {w:g}" for name, w in zip(labels, given, strict=True))
        log.warning("%s by label: %s", option, shown)
    mean = sum(w * n for w, n in zip(given, counts, strict=True)) / sum(counts)
    return tuple(weight / mean for weight in given)


@lru_cache(maxsize=8)
def weights_on_device(
    weights: tuple[float, ...], device: torch.device, dtype: torch.dtype
) -> Tensor:
    """Return the weights as a tensor `(classes,)`, which is copied to the device once."""
    with torch.inference_mode(False):  # the cached tensor may be used in training later
        return torch.tensor(weights, device=device, dtype=dtype)


def _by_label(given: Mapping[Any, float], labels: Sequence[str]) -> dict[str, float]:
    """Return weights by label; a key that is none may differ from one label in case.

    YAML turns the keys `True` and `False` into others.
    """
    named = {_label_name(key): float(value) for key, value in given.items()}
    for name in sorted(set(named) - set(labels)):
        alike = [label for label in labels if label.casefold() == name.casefold()]
        if len(alike) == 1 and alike[0] not in named:
            named[alike[0]] = named.pop(name)
    return named


def _label_name(key: object) -> str:
    """Return a label's name: the command line reads the keys `{1: 2, true: 3}` as other types."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels))
