"""The hidden states of a micro-batch of texts."""

from __future__ import annotations

from torch import Tensor, nn
from transformers import PreTrainedModel

from src.core.task import Inputs
from src.encoders.packing import packed_states
from src.encoders.pairwise_attention import pairwise_mask
from src.objectives.layout import is_packed, spans

_READ = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


def hidden_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """The last layer's states: `(examples, longest, hidden)`, or `(1, tokens, hidden)` if packed.

    `token_type_ids` are passed where the inputs have them: pairs of texts, for bodies that tell the
    two apart. Where the inputs say which position attends to which (`pair_mask`), that is the
    body's attention mask.
    """
    if is_packed(inputs):
        assert isinstance(body, PreTrainedModel), "only bodies that have been tried out are packed"
        return packed_states(body, inputs)
    read = {name: inputs[name] for name in _READ if name in inputs}
    if "pair_mask" in inputs:
        read["attention_mask"] = pairwise_mask(body, inputs["pair_mask"])
    states: Tensor = body(**read).last_hidden_state
    return states


def first_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """The last layer's state of each text's first token, `(examples, hidden)`."""
    states = hidden_states(body, inputs)
    return states[0].index_select(0, spans(inputs)[0]) if is_packed(inputs) else states[:, 0]
