"""A module's whole state, whether its body is sharded or not."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.fsdp import FSDPModule


def is_sharded(module: nn.Module) -> bool:
    """Return whether part of the module's parameters are in other processes."""
    return any(isinstance(part, FSDPModule) for part in module.modules())


def whole_state(module: nn.Module) -> dict[str, Tensor]:
    """Copies of parameters and buffers in the CPU's memory, to be loaded with `load_whole_state`.

    Every process has to ask; of a sharded module only the main one gets an answer.
    """
    if is_sharded(module):
        _reshard(module)
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        found = get_model_state_dict(module, options=options)
        return {name: value.clone() for name, value in found.items() if isinstance(value, Tensor)}
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}


def load_whole_state(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load what the main process has of `whole_state`, or of a checkpoint's `state_dict`."""
    if is_sharded(module):
        _reshard(module)
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(module, dict(state), options=options)
    else:
        module.load_state_dict(state)


def _reshard(module: nn.Module) -> None:
    """Take back what a forward pass without a backward one has left whole."""
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.reshard()
