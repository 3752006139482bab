"""The hidden states of a micro-batch of texts."""

from __future__ import annotations

from torch import Tensor, nn

from src.core.task import Inputs
from src.encoders.pairwise_attention import pairwise_mask

_READ = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


def hidden_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """The last layer's states, `(examples, longest, hidden)`.

    `token_type_ids` are passed where the inputs have them: pairs of texts, for bodies that tell the
    two apart. Where the inputs say which position `attends` to which, that is the body's attention
    mask, and `position_ids` tell the positions.
    """
    read = {name: inputs[name] for name in _READ if name in inputs}
    if "attends" in inputs:
        read["attention_mask"] = pairwise_mask(body, inputs["attends"])
    states: Tensor = body(**read).last_hidden_state
    return states
