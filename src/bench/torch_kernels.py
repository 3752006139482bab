"""Puts torch's own kernels back into bodies, for comparisons with other programs."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from src.cpu.attention import IMPLEMENTATION
from src.cpu.dropout import replace_dropout


def use_torch_kernels(module: nn.Module) -> None:
    """Replace this project's dropout and attention in `module` by torch's own.

    Embeddings need no change: outside of this project's steps they compute torch's gradient.
    """
    replace_dropout(module, nn.Dropout)
    for part in module.modules():
        if isinstance(part, PreTrainedModel) and part.config._attn_implementation == IMPLEMENTATION:
            part.set_attn_implementation("sdpa")
