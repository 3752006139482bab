"""Passes of several texts as one packed row, without padding, and by masks of pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from tartan.kernels.attention import use_tartan_attention
from tartan.kernels.packed_row import PackedRow

_LENGTHS = (3, 6, 1)  # of the texts on which a body is tried out [tokens]
_TOLERANCE = 1e-4  # of states of the order of 1; kernels differ by about 1e-6 in float32
_BODY_INPUTS = ("input_ids", "position_ids", "token_type_ids")
_UNSUPPORTED = (TypeError, ValueError, RuntimeError, IndexError, AttributeError)


def packed_states(body: PreTrainedModel, inputs: Mapping[str, Any]) -> Tensor:
    """Return the last layer's states of a packed row, `(1, tokens, hidden)`.

    `inputs` are `input_ids`, `position_ids` and, for some bodies, `token_type_ids`, `(1, tokens)`;
    `lengths` of the texts, `(texts,)`, beyond which tokens are padding; `host_lengths`, the same as
    a list, without which a GPU has to be waited for; and `pair_mask`, where not all tokens of a
    text attend to all (see `PackedRow`). The body is switched to this project's attention; a
    ValueError says that it ignores the bounds of the texts.
    """
    use_tartan_attention(body)
    lengths = inputs.get("host_lengths")
    lengths = inputs["lengths"].tolist() if lengths is None else list(lengths)
    tokens = inputs["input_ids"].shape[1]
    packing = PackedRow(lengths, inputs["lengths"], tokens, inputs.get("pair_mask"))
    body_inputs = {name: inputs[name] for name in _BODY_INPUTS if name in inputs}
    states: Tensor = body(**body_inputs, packing=packing).last_hidden_state
    if not packing.used:
        raise ValueError(f"{type(body).__name__} cannot read several texts as one row")
    return states


def pairwise_mask(body: nn.Module, pair_mask: Tensor) -> Tensor:
    """Return the `attention_mask` for `body`, `(examples, 1, positions, positions)`.

    It is boolean, or, for `eager` attention, of floats that are added to the scores. `pair_mask`,
    `(examples, positions, positions)`, is True where the row's position attends to the column's.
    """
    allowed = pair_mask[:, None]
    if getattr(body.config, "_attn_implementation", None) != "eager":
        return allowed
    dtype = next(body.parameters()).dtype
    zeros = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return zeros.masked_fill(~allowed, torch.finfo(dtype).min)


@contextmanager
def evaluating(*modules: nn.Module) -> Iterator[None]:
    """Put modules in evaluation mode, and return each of their parts to its own mode afterwards."""
    modes = [(part, part.training) for module in modules for part in module.modules()]
    for module in modules:
        module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _tried(trial: Callable[[Any, Sequence[int], int], bool]) -> Callable[..., bool]:
    """Make a trial of a body one that is not passed where the body cannot take its arguments."""

    @wraps(trial)
    def passed(body: PreTrainedModel, tokens: Sequence[int], first_position: int) -> bool:
        try:
            with evaluating(body), torch.no_grad():
                return trial(body, tokens, first_position)
        except _UNSUPPORTED:
            return False

    return passed


@_tried
def can_pack(body: Any, tokens: Sequence[int], first_position: int) -> bool:
    """Return whether the states of a few texts are the same in a packed row as in a padded batch.

    `tokens` are ids that are not special, `first_position` is the first token's position id.
    """
    device = next(body.parameters()).device
    total, longest = sum(_LENGTHS), max(_LENGTHS)
    row = torch.tensor([[tokens[index % len(tokens)] for index in range(total)]], device=device)
    lengths = torch.tensor(_LENGTHS, device=device)
    mask = torch.arange(longest, device=device) < lengths[:, None]
    positions = first_position + torch.arange(longest, device=device).expand_as(mask)[mask][None]
    packed = {"input_ids": row, "position_ids": positions, "lengths": lengths}
    states = packed_states(body, packed)[0]
    padded = row.new_full(mask.shape, int(body.config.pad_token_id or 0))
    padded[mask] = row[0]
    expected = body(input_ids=padded, attention_mask=mask.long()).last_hidden_state[mask]
    return bool((states - expected).abs().max() < _TOLERANCE)


@_tried
def respects_pair_masks(body: Any, tokens: Sequence[int], first_position: int) -> bool:
    """Return whether the states of a short text follow masks of pairs and position ids.

    A full mask must change nothing, a causal one must hide later tokens only, and tokens in another
    order, each with its own position id, must have the same states.
    """
    device = next(body.parameters()).device
    *text_ids, other_id = tokens[:7]
    text = torch.tensor([text_ids], device=device)
    other = text.clone()
    other[0, -1] = other_id
    length = len(text_ids)
    positions = first_position + torch.arange(length, device=device)[None]
    full = torch.ones(1, length, length, dtype=torch.bool, device=device)

    def states(ids: Tensor, pair_mask: Tensor, position_ids: Tensor = positions) -> Tensor:
        mask = pairwise_mask(body, pair_mask)
        outputs = body(input_ids=ids, attention_mask=mask, position_ids=position_ids)
        return outputs.last_hidden_state[0]  # type: ignore[no-any-return]

    expected = body(input_ids=text, attention_mask=torch.ones_like(text)).last_hidden_state[0]
    unmasked, causal = states(text, full), states(text, full.tril())
    from_reversed = states(text.flip(1), full, positions.flip(1)).flip(0)
    # another last token must change the other states only where they may attend to it
    changed = (states(other, full) - unmasked)[:-1].abs().amax(dim=1)
    leaked = (states(other, full.tril()) - causal)[:-1].abs().amax(dim=1)
    return bool(
        (unmasked - expected).abs().max() < _TOLERANCE
        and (unmasked - from_reversed).abs().max() < _TOLERANCE
        and changed.min() > 0
        and (leaked < 1e-3 * changed).all()
    )
