"""Declares the interface of encoders, of texts or of images."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from tartan.core.body import frozen_running_statistics
from tartan.errors import UserError, first_line


class Encoder(Protocol):
    """A shared body `theta` and what belongs to it: a tokenizer, an image size, ...

    One that checkpoints rebuild has `description` and `from_description` too.
    """

    @property
    def name(self) -> str:
        """The encoder's name in results."""

    @property
    def body(self) -> nn.Module:
        """The body, which each stage trains in place."""

    def keep_head(self, head: nn.Module) -> None:
        """Keep a head (of text, a masked-LM head) so that later tasks start from it."""

    def recompute_activations(self) -> None:
        """Turn on gradient checkpointing, or raise a `UserError` if the body has none."""

    def save_classifier(
        self, head: nn.Module, labels: Sequence[str], folder: Path, max_length: int | None = None
    ) -> str | None:
        """Write body, the end task's head and label names, in index order, to `folder`.

        `max_length` is the end task's longest input, in tokens. Returns a sentence for the user
        where the classifier had to be written in another form than the usual one.
        """


class EncoderSource(Protocol):
    """Loads or builds an encoder (`conf/encoder/`)."""

    def load(self) -> Encoder:
        """Return the encoder, in float32."""


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Exclude parameters and running statistics from training."""
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    module.requires_grad_(False)
    try:
        with frozen_running_statistics(module):
            yield
    finally:
        for name, parameter in module.named_parameters():  # sharding has replaced the objects
            parameter.requires_grad_(name in trained)


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Return the class and `description()` of an encoder in JSON; of others' classes the name."""
    for kind in type(encoder).__mro__:
        if kind.__module__.startswith("tartan.") and hasattr(kind, "from_description"):
            description = kind.description(encoder)  # type: ignore[attr-defined]
            if description is not None:
                path = f"{kind.__module__}.{kind.__qualname__}"
                return {"name": encoder.name, "kind": path, "description": description}
    return {"name": encoder.name}


def encoder_from_description(described: Mapping[str, Any]) -> Encoder:
    """Build the described encoder with random weights; run no code but this project's."""
    name = str(described.get("name"))
    module, _, kind_name = str(described.get("kind", "")).rpartition(".")
    try:
        if not module.startswith("tartan."):
            raise ValueError("the checkpoint does not describe how to build it")
        kind = getattr(importlib.import_module(module), kind_name)
        is_ours = isinstance(kind, type) and kind.__module__.startswith("tartan.")
        if not (is_ours and hasattr(kind, "from_description")):
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
