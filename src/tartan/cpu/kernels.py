"""Puts this package's kernels into the modules that are trained."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from tartan.cpu.attention import use_tartan_attention
from tartan.cpu.dropout import FastDropout, replace_dropout
from tartan.cpu.row_gradients import use_row_gradients


def use_cpu_kernels(module: nn.Module) -> None:
    """Replace parts of `module`, a body, a head or both, by parts that train faster on a CPU.

    Replaces dropout, and the attention and word embeddings of Transformers' models, in place.
    Parameters, their names and the function that is computed stay the same; random draws differ
    from torch's. On other devices the new parts do what torch's do. A second call changes nothing.
    """
    replace_dropout(module, FastDropout)
    for body in _transformers_models(module):
        use_row_gradients(body)
        use_tartan_attention(body)


def _transformers_models(module: nn.Module) -> list[PreTrainedModel]:
    """Return the Transformers models in `module`, except those that are part of another one."""
    if isinstance(module, PreTrainedModel):
        return [module]
    return [found for child in module.children() for found in _transformers_models(child)]
