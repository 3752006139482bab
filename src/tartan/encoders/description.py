"""Describes an encoder in plain values, from which it is rebuilt without its files.

Checkpoints hold the description; the weights are loaded separately.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch

from tartan.encoders.base import Encoder
from tartan.errors import UserError, first_line


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Return the class and `description()` of an encoder, of values that JSON can hold.

    An encoder of somebody else's class, or with somebody else's body, has only a name.
    """
    kinds = [k for k in type(encoder).__mro__ if _is_rebuilt(k)]
    described = kinds[0].description(encoder) if kinds else None
    if described is None:
        return {"name": encoder.name}
    kind = f"{kinds[0].__module__}.{kinds[0].__qualname__}"
    return {"name": encoder.name, "kind": kind, "description": described}


def encoder_from_description(described: Mapping[str, Any]) -> Encoder:
    """Build the described encoder with random weights.

    Leaves the caller's random state as it was, and runs no code but this project's.

    Raises:
        UserError: the encoder has only a name, or the description is damaged.
    """
    name = str(described.get("name"))
    module, _, kind_name = str(described.get("kind", "")).rpartition(".")
    try:
        if not module.startswith("tartan."):
            raise ValueError("the checkpoint does not describe how to build it")
        kind = getattr(importlib.import_module(module), kind_name)
        if not _is_rebuilt(kind):
            raise ValueError(f"{kind_name} is no encoder")
        with torch.random.fork_rng(devices=[]):
            # a head of which the checkpoint has no values is drawn alike every time
            torch.default_generator.manual_seed(0)
            encoder: Encoder = kind.from_description(name, described["description"])
            return encoder
    except (LookupError, TypeError, ValueError, OSError, ImportError, AttributeError) as error:
        raise UserError(
            f"encoder {name} cannot be rebuilt ({type(error).__name__}: {first_line(error)}); pass "
            "it: load_from_checkpoint(PATH, encoder=...)"
        ) from error


def _is_rebuilt(kind: Any) -> bool:
    is_ours = isinstance(kind, type) and kind.__module__.startswith("tartan.")
    return is_ours and hasattr(kind, "from_description")
