"""The interface of encoders, whatever they read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from src.errors import UserError

T = TypeVar("T")


class Encoder(Protocol):
    """A shared body `theta` and what belongs to it: a tokenizer, an image size, ..."""

    @property
    def name(self) -> str:
        """The name a result is reported under."""
        ...

    @property
    def body(self) -> nn.Module:
        """Trained in place by each stage."""
        ...

    def adopt(self, head: nn.Module) -> None:
        """Take over what later tasks' heads start from, after continued pre-training with `head`.

        An encoder keeps a masked-LM head; heads it has no use for are ignored.
        """
        ...

    def recompute_activations(self) -> None:
        """Have the body compute its layers' activations again instead of keeping them.

        Raises:
            UserError: the body has no such form.
        """
        ...

    def save_classifier(
        self,
        head: nn.Module,
        labels: Sequence[str],
        folder: Path,
        max_length: int | None = None,
    ) -> str | None:
        """Write body, the end task's head and label names to `folder`.

        Args:
            max_length: longest input of the end task in tokens; None where inputs are not tokens.

        Returns:
            What a user should know of the form it was written in; None if it is the expected one.
        """
        ...


class EncoderSource(Protocol):
    """A source of an encoder (`conf/encoder/`)."""

    def load(self) -> Encoder:
        """Load or build it, in float32.

        Raises:
            UserError: it cannot be found or reached.
        """
        ...


def of_kind(encoder: object, kind: type[T], what: str, content: str, advice: str) -> T:
    """`encoder`, checked to be of `kind`.

    Args:
        what: the part of the config that needs it, for the message.
        content: what an encoder of the kind reads.
        advice: which one to use.

    Raises:
        UserError: it is of another kind.
    """
    if not isinstance(encoder, kind):
        name = getattr(encoder, "name", type(encoder).__name__)
        raise UserError(f"{what} needs an encoder of {content}, and {name} is none; {advice}")
    return encoder


def freeze(module: nn.Module, frozen: bool) -> None:
    """Exclude (or include again) all parameters, and running statistics, from training."""
    for parameter in module.parameters():
        parameter.requires_grad_(not frozen)
    for part in module.modules():
        if isinstance(part, _BatchNorm) and part.running_mean is not None:
            part.track_running_stats = not frozen
