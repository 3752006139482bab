"""Peers get a body as Transformers has it, without what makes ours faster."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from src.cpu.attention import IMPLEMENTATION
from src.cpu.dropout import replace_dropout


def as_in_transformers(module: nn.Module) -> None:
    """Put torch's own dropout and attention in the place of ours, wherever they are in `module`.

    Embeddings need no change: outside of our steps ours take torch's own gradient.
    """
    replace_dropout(module, nn.Dropout)
    for part in module.modules():
        if isinstance(part, PreTrainedModel) and part.config._attn_implementation == IMPLEMENTATION:
            part.set_attn_implementation("sdpa")
