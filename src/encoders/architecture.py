"""Places of the classifier's head in sequence classifiers of Transformers.

Ours is dropout, dense (hidden to hidden), tanh, dropout, linear on the first token's embedding
(`ClassifierHead`). Some architectures have exactly that. Others have another activation, but a
body that is another architecture's under other names, which has that head:

- DistilBERT (its own head has ReLU) is a BERT without token types;
- ELECTRA (its own has GELU) is a BERT; where its embeddings are narrower than its layers, an ALBERT
  whose layers share no weights.

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
class Place:
    """The places of our head's parts in a sequence classifier of Transformers.

    Attributes:
        dense: our dense layer's place.
        out: our last layer's place.
        dropout: entries of its configuration that hold the head's dropout.
        entries: further entries that make its head ours.
    """

    dense: str
    out: str
    dropout: tuple[str, ...] = ("classifier_dropout",)
    entries: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Body:
    """A body as an architecture with our head has it.

    Attributes:
        config: that architecture's.
        weights: by the name that architecture gives them.
    """

    config: PretrainedConfig
    weights: Weights


_OWN_HEAD = Place("classifier.dense", "classifier.out_proj")
_DEBERTA = Place(
    "pooler.dense", "classifier", ("pooler_dropout", "cls_dropout"), {"pooler_hidden_act": "tanh"}
)
PLACES: Mapping[str, Place] = {
    "albert": Place("albert.pooler", "classifier", ("classifier_dropout_prob",)),
    "bert": Place("bert.pooler.dense", "classifier"),
    "camembert": _OWN_HEAD,
    "data2vec-text": _OWN_HEAD,
    "deberta": _DEBERTA,
    "deberta-v2": _DEBERTA,
    "ernie": Place("ernie.pooler.dense", "classifier"),
    "megatron-bert": Place("bert.pooler.dense", "classifier", ()),
    "mpnet": Place("classifier.dense", "classifier.out_proj", ()),
    "roberta": _OWN_HEAD,
    "roberta-prelayernorm": _OWN_HEAD,
    "xlm-roberta": _OWN_HEAD,
    "xlm-roberta-xl": _OWN_HEAD,
    "xmod": _OWN_HEAD,
}
"""By model type; each is tried out whenever a classifier is saved."""


def body_with_our_head(body: PreTrainedModel) -> Body | None:
    """The body as an architecture of `PLACES`: itself, or its equal; None where there is none."""
    if body.config.model_type in PLACES:
        config = type(body.config).from_dict(body.config.to_dict())
        return Body(config, dict(body.state_dict()))
    translate = _TRANSLATIONS.get(body.config.model_type)
    return None if translate is None else translate(body)


def _distilbert_as_bert(body: PreTrainedModel) -> Body:
    ours = body.config
    config = BertConfig(
        vocab_size=ours.vocab_size,
        hidden_size=ours.dim,
        num_hidden_layers=ours.n_layers,
        num_attention_heads=ours.n_heads,
        intermediate_size=ours.hidden_dim,
        hidden_act=ours.activation,
        hidden_dropout_prob=ours.dropout,
        attention_probs_dropout_prob=ours.attention_dropout,
        max_position_embeddings=ours.max_position_embeddings,
        type_vocab_size=2,
        initializer_range=ours.initializer_range,
        layer_norm_eps=1e-12,  # DistilBERT's, fixed in its code
        pad_token_id=ours.pad_token_id,
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
    # whatever the type of a token, nothing is added
    weights["embeddings.token_type_embeddings.weight"] = torch.zeros(2, ours.dim)
    return Body(config, weights)


def _electra_as_bert_or_albert(body: PreTrainedModel) -> Body | None:
    ours = body.config
    if ours.is_decoder or ours.add_cross_attention:
        return None
    shared = {
        name: getattr(ours, name)
        for name in (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "hidden_act", "hidden_dropout_prob",
            "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size",
            "initializer_range", "layer_norm_eps", "pad_token_id",
        )
    }  # fmt: skip
    if ours.embedding_size == ours.hidden_size:
        return Body(BertConfig(**shared), _renamed(body, r"encoder\.layer\.(\d+)\.", None, {}))
    config = AlbertConfig(
        **shared,
        embedding_size=ours.embedding_size,
        num_hidden_groups=ours.num_hidden_layers,
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
    return Body(config, weights)


def _renamed(
    body: PreTrainedModel, layer: str, target: str | None, parts: Mapping[str, str]
) -> Weights:
    """The body's weights, those of layers under other names.

    Args:
        layer: a pattern of what a layer's weights begin with, its number in a group.
        target: what they are to begin with; None for the same.
        parts: new names of a layer's parts by old.
    """
    weights = {}
    for name, value in body.state_dict().items():
        found = re.match(layer, name)
        if found is not None and target is not None:
            part, _, kind = name[found.end() :].rpartition(".")
            name = f"{target.format(found[1])}{parts[part]}.{kind}"
        weights[name] = value
    return weights


_TRANSLATIONS: Mapping[str, Callable[[PreTrainedModel], Body | None]] = {
    "distilbert": _distilbert_as_bert,
    "electra": _electra_as_bert_or_albert,
}
