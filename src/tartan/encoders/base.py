"""Declares the interface of encoders, of texts or of images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from torch import nn

from tartan.core.body import frozen_running_statistics
from tartan.errors import UserError

T = TypeVar("T")


class Encoder(Protocol):
    """A shared body `theta` and what belongs to it: a tokenizer, an image size, ...

    One that checkpoints rebuild has `description` and `from_description` too (see
    `tartan.encoders.description`).
    """

    @property
    def name(self) -> str:
        """The encoder's name in results."""
        ...

    @property
    def body(self) -> nn.Module:
        """The body, which each stage trains in place."""
        ...

    def keep_head(self, head: nn.Module) -> None:
        """Keep a head that continued pre-training has trained, so that later tasks start from it.

        Encoders of text keep a masked-LM head; other heads are ignored.
        """
        ...

    def recompute_activations(self) -> None:
        """Turn on gradient checkpointing: the body recomputes activations in backward passes.

        Raises:
            UserError: the body does not support it.
        """
        ...

    def save_classifier(
        self, head: nn.Module, labels: Sequence[str], folder: Path, max_length: int | None = None
    ) -> str | None:
        """Write body, the end task's head and label names to `folder`.

        Args:
            head: the end task's head.
            labels: label names in index order.
            folder: the folder to write to.
            max_length: longest input of the end task; None where inputs are not texts [tokens].

        Returns:
            A sentence for the user where the classifier had to be written in another form than the
            usual one; otherwise None.
        """
        ...


class EncoderSource(Protocol):
    """Loads or builds an encoder (`conf/encoder/`)."""

    def load(self) -> Encoder:
        """Return the encoder, in float32.

        Raises:
            UserError: it cannot be found or loaded.
        """
        ...


def require_encoder(encoder: object, kind: type[T], what: str, content: str, advice: str) -> T:
    """Return `encoder`, after checking that it is of `kind`, which reads `content`.

    Raises:
        UserError: it is of another kind; the message says that `what` needs it, and the `advice`.
    """
    if not isinstance(encoder, kind):
        name = getattr(encoder, "name", type(encoder).__name__)
        raise UserError(f"{what} needs an encoder of {content}, but {name} is not one; {advice}")
    return encoder


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Exclude parameters and running statistics from training inside of the `with` block.

    What was excluded before stays so after it.
    """
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    module.requires_grad_(False)
    try:
        with frozen_running_statistics(module):
            yield
    finally:
        for name, parameter in module.named_parameters():  # sharding has replaced the objects
            parameter.requires_grad_(name in trained)
