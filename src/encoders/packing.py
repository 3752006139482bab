"""Bodies whose texts go through them as one row of tokens, without padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from src.core.device import is_cpu
from src.cpu.attention import use_tartan_attention
from src.cpu.packed_attention import Packing
from src.cuda.packed_row import PackedRow

_LENGTHS = (3, 6, 1)
"""Of the texts that a body is tried out on."""
_CLOSE = 1e-4
"""Of states, which are of the order of 1: float32 kernels for either form differ by 1e-6."""
_READ = ("input_ids", "position_ids", "token_type_ids")


def packed_states(body: PreTrainedModel, inputs: Mapping[str, Any]) -> Tensor:
    """The last layer's states of a packed row, `(1, tokens, hidden)`.

    Args:
        inputs: `input_ids` and `position_ids` (and `token_type_ids`), `(1, tokens)`, and `lengths`
            of the texts, `(texts,)`; what the row holds beyond them belongs to none. Without
            `host_lengths`, the same as numbers, a GPU is waited for. `pair_mask`, on a CPU, if not
            all tokens of a text attend to all (see `Packing`).

    Raises:
        ValueError: the body's attention takes no notice of where the texts are.
    """
    use_tartan_attention(body)
    packing = _packing(inputs)
    read = {name: inputs[name] for name in _READ if name in inputs}
    states: Tensor = body(**read, packing=packing).last_hidden_state
    if not packing.used:
        raise ValueError(f"{type(body).__name__} cannot read several texts as one row")
    return states


def _packing(inputs: Mapping[str, Any]) -> Packing | PackedRow:
    found = inputs.get("host_lengths")
    lengths: list[int] = inputs["lengths"].tolist() if found is None else list(found)
    row: Tensor = inputs["input_ids"]
    pair_mask: Tensor | None = inputs.get("pair_mask")
    if not is_cpu(row.device):
        assert pair_mask is None, "no kernel of a GPU's attends by pairs of positions"
        return PackedRow(lengths, inputs["lengths"], row.shape[1])
    beyond = row.shape[1] - sum(lengths)
    if beyond:
        lengths.append(beyond)
        if pair_mask is not None:
            pair_mask = torch.cat([pair_mask, pair_mask.new_ones(beyond**2)])
    return Packing(lengths, pair_mask=pair_mask)


def can_pack(body: PreTrainedModel, tokens: Sequence[int], first_position: int) -> bool:
    """Try out whether texts have the same states in one row as side by side.

    Not so where attention depends on more than what Transformers hands to attention functions
    (position biases, windows of an architecture's own), or on the whole row.

    Args:
        tokens: ids of ordinary tokens.
        first_position: the number that the architecture gives to a text's first position.
    """
    was_training = body.training
    body.eval()
    try:
        return _states_agree(body, tokens, first_position)
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        return False  # what architectures raise at arguments that they do not know
    finally:
        body.train(was_training)


@torch.no_grad()
def _states_agree(body: Any, tokens: Sequence[int], first_position: int) -> bool:
    device = next(body.parameters()).device
    total, longest = sum(_LENGTHS), max(_LENGTHS)
    chosen = [tokens[place % len(tokens)] for place in range(total)]
    row = torch.tensor([chosen], device=device)
    lengths = torch.tensor(_LENGTHS, device=device)
    held = torch.arange(longest, device=device) < lengths[:, None]
    places = first_position + torch.arange(longest, device=device).expand_as(held)[held][None]
    packed = {"input_ids": row, "position_ids": places, "lengths": lengths}
    found = packed_states(body, packed)[0]
    side_by_side = row.new_full(held.shape, int(body.config.pad_token_id or 0))
    side_by_side[held] = row[0]
    usual = body(input_ids=side_by_side, attention_mask=held.long()).last_hidden_state[held]
    return bool((found - usual).abs().max() < _CLOSE)
