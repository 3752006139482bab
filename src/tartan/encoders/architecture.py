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
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AlbertConfig, BertConfig, PretrainedConfig, PreTrainedModel


class HeadLocation(NamedTuple):
    """Names the modules of a `ClassifierHead` in a sequence classifier of Transformers."""

    dense: str
    out: str
    dropout: tuple[str, ...] = ("classifier_dropout",)  # the configuration's entries for it
    entries: Mapping[str, Any] = {}  # further ones that this head needs


_LIKE_ROBERTA = HeadLocation("classifier.dense", "classifier.out_proj")
_LIKE_DEBERTA = HeadLocation(
    "pooler.dense", "classifier", ("pooler_dropout", "cls_dropout"), {"pooler_hidden_act": "tanh"}
)
HEAD_LOCATIONS: Mapping[str, HeadLocation] = {
    "albert": HeadLocation("albert.pooler", "classifier", ("classifier_dropout_prob",)),
    "bert": HeadLocation("bert.pooler.dense", "classifier"),
    "camembert": _LIKE_ROBERTA,
    "data2vec-text": _LIKE_ROBERTA,
    "deberta": _LIKE_DEBERTA,
    "deberta-v2": _LIKE_DEBERTA,
    "ernie": HeadLocation("ernie.pooler.dense", "classifier"),
    "megatron-bert": HeadLocation("bert.pooler.dense", "classifier", ()),
    "mpnet": HeadLocation("classifier.dense", "classifier.out_proj", ()),
    "roberta": _LIKE_ROBERTA,
    "roberta-prelayernorm": _LIKE_ROBERTA,
    "xlm-roberta": _LIKE_ROBERTA,
    "xlm-roberta-xl": _LIKE_ROBERTA,
    "xmod": _LIKE_ROBERTA,
}
"""Location of the head by `model_type`; each saved classifier is compared with body and head."""
_SIZES = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings",
    "type_vocab_size", "initializer_range", "layer_norm_eps", "pad_token_id",
)  # fmt: skip
_FROM_DISTILBERT = {
    r"^transformer\.layer": "encoder.layer",
    r"attention\.q_lin": "attention.self.query",
    r"attention\.k_lin": "attention.self.key",
    r"attention\.v_lin": "attention.self.value",
    r"attention\.out_lin": "attention.output.dense",
    r"sa_layer_norm": "attention.output.LayerNorm",
    r"ffn\.lin1": "intermediate.dense",
    r"ffn\.lin2": "output.dense",
    r"output_layer_norm": "output.LayerNorm",
}
_FROM_ELECTRA_TO_ALBERT = {
    r"^encoder\.layer\.(\d+)": r"encoder.albert_layer_groups.\1.albert_layers.0",
    r"attention\.(self|output)\.": "attention.",
    r"intermediate\.dense": "ffn",
    r"\.output\.dense": ".ffn_output",
    r"\.output\.LayerNorm": ".full_layer_layer_norm",
    r"^embeddings_project": "encoder.embedding_hidden_mapping_in",
}


def convert_body(body: PreTrainedModel) -> tuple[PretrainedConfig, dict[str, Tensor]] | None:
    """Return configuration and weights of a body, or its equal, among `HEAD_LOCATIONS`, or None."""
    source, weights = body.config, dict(body.state_dict())
    sizes = {name: getattr(source, name) for name in _SIZES if hasattr(source, name)}
    if source.model_type in HEAD_LOCATIONS:
        return type(source).from_dict(source.to_dict()), weights
    if source.model_type == "distilbert":
        sizes |= {
            "intermediate_size": source.hidden_dim,
            "hidden_act": source.activation,
            "hidden_dropout_prob": source.dropout,
            "attention_probs_dropout_prob": source.attention_dropout,
            "layer_norm_eps": 1e-12,  # fixed in DistilBERT's code
        }
        # DistilBERT adds nothing for a token's type
        weights["embeddings.token_type_embeddings.weight"] = torch.zeros(2, source.dim)
        return BertConfig(**sizes), _renamed(weights, _FROM_DISTILBERT)
    if source.model_type != "electra":
        return None
    if source.embedding_size == source.hidden_size:
        return BertConfig(**sizes), weights
    sizes |= {"embedding_size": source.embedding_size, "inner_group_num": 1}
    config = AlbertConfig(**sizes, num_hidden_groups=source.num_hidden_layers)
    return config, _renamed(weights, _FROM_ELECTRA_TO_ALBERT)


def _renamed(weights: Mapping[str, Tensor], rules: Mapping[str, str]) -> dict[str, Tensor]:
    renamed = {}
    for name, value in weights.items():
        for pattern, replacement in rules.items():
            name = re.sub(pattern, replacement, name)
        renamed[name] = value
    return renamed
