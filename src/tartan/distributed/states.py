"""Copies and loads a module's whole state, whether or not its body is sharded."""

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
    """Return whether some of the module's parameters are in other processes."""
    return any(isinstance(part, FSDPModule) for part in module.modules())


def whole_state(module: nn.Module) -> dict[str, Tensor]:
    """Return copies of parameters and buffers in the CPU's memory, for `load_whole_state`.

    All processes have to call this; of a sharded module only the main process gets the state.
    """
    if is_sharded(module):
        reshard(module)
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        found = get_model_state_dict(module, options=options)
        return {name: value.clone() for name, value in found.items() if isinstance(value, Tensor)}
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}


def load_whole_state(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load the main process's result of `whole_state`, or a checkpoint's `state_dict`."""
    if is_sharded(module):
        reshard(module)
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(module, dict(state), options=options)
    else:
        module.load_state_dict(state)


def reshard(module: nn.Module) -> None:
    """Reshard what a forward pass without a backward pass has left gathered."""
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.reshard()
