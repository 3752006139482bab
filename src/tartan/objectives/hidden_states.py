"""Computes the hidden states of a micro-batch of texts."""

from __future__ import annotations

from torch import Tensor, nn
from transformers import PreTrainedModel

from tartan.core.task import Inputs
from tartan.errors import UserError
from tartan.kernels.packing import packed_states, pairwise_mask
from tartan.objectives.layout import is_packed, spans

_BODY_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


def hidden_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """Return the last layer's states of a micro-batch, `(examples, positions, hidden)`.

    `inputs` are the micro-batch's (see `Layout.parts`); a `pair_mask` is the attention mask.

    Raises:
        UserError: the inputs are packed, and the body is none of Transformers.
    """
    if is_packed(inputs):
        if not isinstance(body, PreTrainedModel):  # e.g. one that torch.compile has wrapped
            raise UserError(
                f"a {type(body).__name__} cannot read packed texts, as only models of Transformers "
                'can; give TartanData(sizes={"packed": False})'
            )
        return packed_states(body, inputs)
    body_inputs = {name: inputs[name] for name in _BODY_INPUTS if name in inputs}
    if "pair_mask" in inputs:
        body_inputs["attention_mask"] = pairwise_mask(body, inputs["pair_mask"])
    states: Tensor = body(**body_inputs).last_hidden_state
    return states


def first_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """Return the last layer's state of each text's first token, `(examples, hidden)`."""
    states = hidden_states(body, inputs)
    return states[0].index_select(0, spans(inputs)[0]) if is_packed(inputs) else states[:, 0]
