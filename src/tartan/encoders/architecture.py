"""Knows which sequence classifiers of Transformers have this project's classifier head.

`ClassifierHead` is dropout, dense (hidden to hidden), tanh, dropout, linear on the first token's
state. Some architectures have exactly this head. Others have a head with another activation, but
their body equals, under other names, the body of an architecture that has it:

- DistilBERT (its own head has ReLU) is a BERT without token types;
- ELECTRA (its own head has GELU) is a BERT or, where its embeddings are narrower than its layers,
  an ALBERT whose layers share no weights.

Neither holds for ModernBERT (a layer norm between the two layers), Longformer (its classifier gives
the first token global attention), BigBird and RoFormer (the head has the body's activation).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AlbertConfig,
    BertConfig,
    PretrainedConfig,
    PreTrainedModel,
)

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class HeadLocation:
    """Locates the layers of a `ClassifierHead` in a sequence classifier of Transformers.

    Attributes:
        dense: name of the module that is the dense layer.
        out: name of the module that is the last layer.
        dropout: entries of the configuration that hold the head's dropout.
        entries: further entries of the configuration, with the values that this head needs.
    """

    dense: str
    out: str
    dropout: tuple[str, ...] = ("classifier_dropout",)
    entries: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ConvertedBody:
    """A body in the form of an architecture of `HEAD_LOCATIONS`.

    Attributes:
        config: the architecture's configuration.
        weights: the body's weights by their names in that architecture.
    """

    config: PretrainedConfig
    weights: Weights


_OWN_HEAD = HeadLocation("classifier.dense", "classifier.out_proj")
_DEBERTA = HeadLocation(
    "pooler.dense", "classifier", ("pooler_dropout", "cls_dropout"), {"pooler_hidden_act": "tanh"}
)
HEAD_LOCATIONS: Mapping[str, HeadLocation] = {
    "albert": HeadLocation("albert.pooler", "classifier", ("classifier_dropout_prob",)),
    "bert": HeadLocation("bert.pooler.dense", "classifier"),
    "camembert": _OWN_HEAD,
    "data2vec-text": _OWN_HEAD,
    "deberta": _DEBERTA,
    "deberta-v2": _DEBERTA,
    "ernie": HeadLocation("ernie.pooler.dense", "classifier"),
    "megatron-bert": HeadLocation("bert.pooler.dense", "classifier", ()),
    "mpnet": HeadLocation("classifier.dense", "classifier.out_proj", ()),
    "roberta": _OWN_HEAD,
    "roberta-prelayernorm": _OWN_HEAD,
    "xlm-roberta": _OWN_HEAD,
    "xlm-roberta-xl": _OWN_HEAD,
    "xmod": _OWN_HEAD,
}
"""Location of the head by `model_type`; each saved classifier is compared with body and head."""


def convert_body(body: PreTrainedModel) -> ConvertedBody | None:
    """Return the body in the form of an architecture of `HEAD_LOCATIONS`.

    Returns:
        The body as it is, or converted to an architecture that computes the same; None where there
        is none.
    """
    if body.config.model_type in HEAD_LOCATIONS:
        config = type(body.config).from_dict(body.config.to_dict())
        return ConvertedBody(config, dict(body.state_dict()))
    convert = _CONVERSIONS.get(body.config.model_type)
    return None if convert is None else convert(body)


def _distilbert_as_bert(body: PreTrainedModel) -> ConvertedBody:
    source = body.config
    config = BertConfig(
        vocab_size=source.vocab_size,
        hidden_size=source.dim,
        num_hidden_layers=source.n_layers,
        num_attention_heads=source.n_heads,
        intermediate_size=source.hidden_dim,
        hidden_act=source.activation,
        hidden_dropout_prob=source.dropout,
        attention_probs_dropout_prob=source.attention_dropout,
        max_position_embeddings=source.max_position_embeddings,
        type_vocab_size=2,
        initializer_range=source.initializer_range,
        layer_norm_eps=1e-12,  # fixed in DistilBERT's code
        pad_token_id=source.pad_token_id,
    )
    layer = {
        "attention.q_lin": "attention.self.query",
        "attention.k_lin": "attention.self.key",
        "attention.v_lin": "attention.self.value",
        "attention.out_lin": "attention.output.dense",
        "sa_layer_norm": "attention.output.LayerNorm",
        "ffn.lin1": "intermediate.dense",
        "ffn.lin2": "output.dense",
        "output_layer_norm": "output.LayerNorm",
    }
    weights = _renamed(body, r"transformer\.layer\.(\d+)\.", "encoder.layer.{}.", layer)
    # DistilBERT adds nothing for a token's type
    weights["embeddings.token_type_embeddings.weight"] = torch.zeros(2, source.dim)
    return ConvertedBody(config, weights)


def _electra_as_bert_or_albert(body: PreTrainedModel) -> ConvertedBody | None:
    source = body.config
    if source.is_decoder or source.add_cross_attention:
        return None
    shared = {
        name: getattr(source, name)
        for name in (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "hidden_act", "hidden_dropout_prob",
            "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size",
            "initializer_range", "layer_norm_eps", "pad_token_id",
        )
    }  # fmt: skip
    if source.embedding_size == source.hidden_size:
        return ConvertedBody(BertConfig(**shared), dict(body.state_dict()))
    config = AlbertConfig(
        **shared,
        embedding_size=source.embedding_size,
        num_hidden_groups=source.num_hidden_layers,
        inner_group_num=1,
    )
    layer = {
        "attention.self.query": "attention.query",
        "attention.self.key": "attention.key",
        "attention.self.value": "attention.value",
        "attention.output.dense": "attention.dense",
        "attention.output.LayerNorm": "attention.LayerNorm",
        "intermediate.dense": "ffn",
        "output.dense": "ffn_output",
        "output.LayerNorm": "full_layer_layer_norm",
    }
    group = "encoder.albert_layer_groups.{}.albert_layers.0."
    weights = _renamed(body, r"encoder\.layer\.(\d+)\.", group, layer)
    for part in ("weight", "bias"):
        weights[f"encoder.embedding_hidden_mapping_in.{part}"] = weights.pop(
            f"embeddings_project.{part}"
        )
    return ConvertedBody(config, weights)


def _renamed(body: PreTrainedModel, layer: str, target: str, parts: Mapping[str, str]) -> Weights:
    """Return the body's weights, with those of its layers renamed.

    Args:
        body: the body.
        layer: pattern of the prefix of a layer's weights, with the layer's number as a group.
        target: the new prefix, a format of the number.
        parts: new names of a layer's parts by their old names.
    """
    weights = {}
    for name, value in body.state_dict().items():
        found = re.match(layer, name)
        if found is not None:
            part, _, kind = name[found.end() :].rpartition(".")
            name = f"{target.format(found[1])}{parts[part]}.{kind}"
        weights[name] = value
    return weights


_CONVERSIONS: Mapping[str, Callable[[PreTrainedModel], ConvertedBody | None]] = {
    "distilbert": _distilbert_as_bert,
    "electra": _electra_as_bert_or_albert,
}
