"""What a body makes of a micro-batch of texts."""

from __future__ import annotations

from torch import Tensor, nn

from src.core.task import Inputs

_READ = ("input_ids", "attention_mask", "token_type_ids")


def hidden_states(body: nn.Module, inputs: Inputs) -> Tensor:
    """The last layer's states, `(examples, longest, hidden)`.

    `token_type_ids` are passed where the inputs have them: pairs of texts, for bodies that tell the
    two apart.
    """
    states: Tensor = body(
        **{name: inputs[name] for name in _READ if name in inputs}
    ).last_hidden_state
    return states
