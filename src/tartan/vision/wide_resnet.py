"""Builds encoders of images: wide residual networks (Zagoruyko and Komodakis, 2016)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import torch
from annotated_types import Ge
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.errors import UserError
from tartan.settings import Below1, Checked, Count, Natural, NonNegative, Positive


class WideResNet(nn.Module):
    """WRN-`depth`-`width` (see `WideResNetSource`); features are the mean over all positions."""

    def __init__(self, channels: int, depth: int, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.depth, self.width, self.dropout = depth, width, dropout
        self.first = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        sizes = [16, 16 * width, 32 * width, 64 * width]
        layers: list[nn.Module] = []
        for group, (before, after) in enumerate(itertools.pairwise(sizes)):
            for block in range((depth - 4) // 6):
                stride = 2 if group > 0 and block == 0 else 1
                layers.append(_Block(before if block == 0 else after, after, stride, dropout))
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(sizes[-1])
        self.hidden_size = sizes[-1]
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Return the features `(n, hidden_size)` of `images` `(n, channels, height, width)`."""
        hidden = F.relu(self.norm(self.blocks(self.first(images))))
        return hidden.mean(dim=(2, 3))


class _Block(nn.Module):
    """Norm, ReLU, convolution, twice, with a shortcut (figure 1a of the paper, pre-activated)."""

    def __init__(self, before: int, after: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(before)
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        same = before == after and stride == 1
        self.shortcut = None if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.norm1(x))
        hidden: Tensor = self.conv2(self.dropout(F.relu(self.norm2(self.conv1(active)))))
        residual: Tensor = x if self.shortcut is None else self.shortcut(active)
        return residual + hidden


@dataclass
class ImageEncoder:
    """An encoder of images: `(n, channels, height, width)` to features `(n, hidden_size)`."""

    name: str  # in results
    body: nn.Module
    hidden_size: int
    mean: tuple[float, ...]  # of each channel, of pixels scaled to [0, 1], to normalise inputs
    std: tuple[float, ...]

    def keep_head(self, head: nn.Module) -> None:
        """Do nothing: each task has classes, and so a head, of its own."""

    def recompute_activations(self) -> None:
        raise UserError(f"encoder {self.name} has no gradient checkpointing")

    def save_classifier(
        self, head: nn.Module, labels: Sequence[str], folder: Path, max_length: int | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        state = nn.ModuleDict({"body": self.body, "head": head}).state_dict()
        weights = {name: value.contiguous() for name, value in state.items()}
        save_file(weights, folder / "model.safetensors")
        pixels = {"mean": self.mean, "std": self.std}
        for name, content in (("labels", list(labels)), ("pixels", pixels)):
            text = json.dumps(content, indent=1) + "\n"
            (folder / f"{name}.json").write_text(text, encoding="utf-8")

    def description(self) -> dict[str, Any] | None:
        """Return the network's sizes, for `from_description`; None for another body."""
        if not isinstance(self.body, WideResNet):
            return None
        sizes = {name: getattr(self.body, name) for name in ("depth", "width", "dropout")}
        return {**sizes, "mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_description(cls, name: str, description: Mapping[str, Any]) -> ImageEncoder:
        return replace(WideResNetSource(**description).load(), name=name)


@dataclass(frozen=True)
class WideResNetSource(Checked):
    """A wide residual network with random weights, which are the same every time for a `seed`.

    Attributes:
        mean: mean of each colour channel, of pixels scaled to [0, 1].
        std: standard deviation of each channel, of pixels scaled to [0, 1].
        depth: 6k + 4 for a whole k [layers].
        width: factor on the channels.
        dropout: dropout probability between the convolutions of a block.
        seed: seed of the weights.
        lr: learning rates that suit it, by kind of stage; the stages refer to them.
    """

    mean: Sequence[float]
    std: Sequence[Positive]
    depth: Annotated[int, Ge(10)] = 16
    width: Count = 2
    dropout: Below1 = 0.0
    seed: Natural = 0
    lr: Mapping[str, NonNegative] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.depth - 4) % 6:
            raise UserError(f"depth must be 10, 16, 22, ..., got {self.depth}")
        if len(self.mean) != len(self.std):
            raise UserError("mean and std need one value for each colour channel")

    def load(self) -> ImageEncoder:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            body = WideResNet(len(self.mean), self.depth, self.width, self.dropout)
        name = f"wide_resnet_{self.depth}_{self.width}"
        return ImageEncoder(name, body.train(), body.hidden_size, tuple(self.mean), tuple(self.std))


def require_image_encoder(encoder: object, what: str) -> ImageEncoder:
    """Return `encoder`, after checking that it reads images, which `what` needs."""
    if not isinstance(encoder, ImageEncoder):
        raise UserError(f"{what} needs an encoder of images: encoder=wide_resnet")
    return encoder
