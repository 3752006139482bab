"""The stack of layers of a text encoder's body: freezing, beginning anew, rates by depth."""

from itertools import takewhile

import torch
from torch import nn
from transformers import PreTrainedModel

from tartan.encoders.lora import adapted_layers
from tartan.errors import UserError


def layers_of(body: nn.Module, option: str) -> nn.ModuleList:
    """Return the body's layers, the lowest first."""
    depth = getattr(getattr(body, "config", None), "num_hidden_layers", 0)
    stacks = [m for m in body.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if not stacks:  # images, or ALBERT, whose layers share their weights
        raise UserError(f"{option}: the encoder has no layers with weights of their own")
    return stacks[0]


def below(body: nn.Module, layer: nn.Module) -> list[nn.Parameter]:
    """Return the parameters under a layer: those of the embeddings and of the lower layers."""
    first = next(layer.parameters())
    return list(takewhile(lambda parameter: parameter is not first, body.parameters()))


def freeze_lowest(body: nn.Module, count: int) -> None:
    """Exclude the embeddings and a number of lowest layers from training."""
    layers = layers_of(body, "encoder.freeze")
    if count >= len(layers):
        raise UserError(f"encoder.freeze={count}: the encoder has {len(layers)} layers")
    for parameter in below(body, layers[count]):
        parameter.requires_grad_(False)


def reinitialise_top(body: nn.Module, count: int, seed: int) -> None:
    """Draw the weights of a number of top layers anew, as Zhang et al. (2021) do."""
    if not count:
        return
    layers = layers_of(body, "reinitialise")
    if count > len(layers) or not isinstance(body, PreTrainedModel):
        raise UserError(f"reinitialise={count}: the encoder has {len(layers)} layers")
    if adapted_layers(body):  # they would start anew too, and not from 0
        raise UserError(f"reinitialise={count} draws weights that encoder.adapter does not train")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        for module in (module for layer in layers[-count:] for module in layer.modules()):
            for parameter in module.parameters(recurse=False):
                # else Transformers would leave it as it is
                parameter.__dict__.pop("_is_hf_initialized", None)
            body._init_weights(module)


def depths(body: nn.Module) -> dict[nn.Parameter, int]:
    """Return how far each parameter is below the top layer [layers]."""
    layers = layers_of(body, "layer_decay")
    found = dict.fromkeys(body.parameters(), 0)
    for index in range(len(layers)):
        found |= dict.fromkeys(layers[index].parameters(), len(layers) - 1 - index)
    return found | dict.fromkeys(below(body, layers[0]), len(layers))
