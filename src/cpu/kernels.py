"""The one call that puts this folder's kernels on what is trained."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from src.cpu.attention import use_cheap_attention
from src.cpu.dropout import CheapDropout, use_dropout
from src.cpu.row_gradients import use_row_embedding


def use_cpu_kernels(module: nn.Module) -> None:
    """Have `module`, a body, a head or both, train with kernels that cost less on a CPU.

    Dropout, and the attention and word embeddings of Transformers' models are exchanged in place:
    parameters, their names and what is computed stay, random draws are others than torch's. On
    other devices each does what torch's own does. Doing it twice changes nothing.
    """
    use_dropout(module, CheapDropout)
    for body in _transformers(module):
        use_row_embedding(body)
        use_cheap_attention(body)


def _transformers(module: nn.Module) -> list[PreTrainedModel]:
    """Transformers' models in `module`, without those that are part of another."""
    if isinstance(module, PreTrainedModel):
        return [module]
    return [found for child in module.children() for found in _transformers(child)]
