"""Passes several texts through a body as one packed row of tokens, without padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from tartan.core.device import is_cpu
from tartan.cpu.attention import use_tartan_attention
from tartan.cpu.packed_attention import Packing
from tartan.cuda.packed_row import PackedRow
from tartan.encoders.evaluating import evaluating

_LENGTHS = (3, 6, 1)
"""Lengths of the texts on which a body is tried out [tokens]."""
_TOLERANCE = 1e-4
"""Largest difference of states that count as equal; states are of the order of 1, and kernels for
packed rows and for padded batches differ by about 1e-6 in float32.
"""
_BODY_INPUTS = ("input_ids", "position_ids", "token_type_ids")


def packed_states(body: PreTrainedModel, inputs: Mapping[str, Any]) -> Tensor:
    """Return the last layer's states of a packed row, `(1, tokens, hidden)`.

    Args:
        body: the body, which is switched to this project's attention implementation.
        inputs: the packed row:

            - `input_ids`, `position_ids` and, for some bodies, `token_type_ids`, `(1, tokens)`;
            - `lengths` of the texts, `(texts,)`; further tokens of the row are padding;
            - `host_lengths`, the same lengths as a list, without which a GPU has to be waited for;
            - `pair_mask`, on a CPU, where not all tokens of a text attend to all (see `Packing`).

    Raises:
        ValueError: the body's attention ignores the bounds of the texts.
    """
    use_tartan_attention(body)
    packing = _packing(inputs)
    body_inputs = {name: inputs[name] for name in _BODY_INPUTS if name in inputs}
    states: Tensor = body(**body_inputs, packing=packing).last_hidden_state
    if not packing.used:
        raise ValueError(f"{type(body).__name__} cannot read several texts as one row")
    return states


def _packing(inputs: Mapping[str, Any]) -> Packing | PackedRow:
    on_host = inputs.get("host_lengths")
    lengths: list[int] = inputs["lengths"].tolist() if on_host is None else list(on_host)
    row: Tensor = inputs["input_ids"]
    pair_mask: Tensor | None = inputs.get("pair_mask")
    if not is_cpu(row.device):
        assert pair_mask is None, "GPU kernels take no mask of pairs of positions"
        return PackedRow(lengths, inputs["lengths"], row.shape[1])
    padding = row.shape[1] - sum(lengths)
    if padding:
        lengths.append(padding)  # one more text
        if pair_mask is not None:
            pair_mask = torch.cat([pair_mask, pair_mask.new_ones(padding**2)])
    return Packing(lengths, pair_mask=pair_mask)


def can_pack(body: PreTrainedModel, tokens: Sequence[int], first_position: int) -> bool:
    """Return whether the states of a few texts are the same in a packed row as in a padded batch.

    They differ where attention depends on more than Transformers passes to attention functions
    (position biases, windows of an architecture's own), or on the whole row.

    Args:
        body: the body.
        tokens: ids of tokens that are not special.
        first_position: position id of a text's first token.
    """
    try:
        with evaluating(body):
            return _states_agree(body, tokens, first_position)
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        return False  # architectures raise these at arguments that they do not support


@torch.no_grad()
def _states_agree(body: Any, tokens: Sequence[int], first_position: int) -> bool:
    device = next(body.parameters()).device
    total, longest = sum(_LENGTHS), max(_LENGTHS)
    chosen = [tokens[index % len(tokens)] for index in range(total)]
    row = torch.tensor([chosen], device=device)
    lengths = torch.tensor(_LENGTHS, device=device)
    mask = torch.arange(longest, device=device) < lengths[:, None]
    positions = first_position + torch.arange(longest, device=device).expand_as(mask)[mask][None]
    packed = {"input_ids": row, "position_ids": positions, "lengths": lengths}
    found = packed_states(body, packed)[0]
    padded = row.new_full(mask.shape, int(body.config.pad_token_id or 0))
    padded[mask] = row[0]
    expected = body(input_ids=padded, attention_mask=mask.long()).last_hidden_state[mask]
    return bool((found - expected).abs().max() < _TOLERANCE)
