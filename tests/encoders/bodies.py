"""Builds small random bodies of many architectures, and saves them with a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as t
from transformers import PreTrainedModel

from tartan.encoders.tiny import letter_pair_tokenizer

SMALL: dict[str, Any] = {
    "vocab_size": len(letter_pair_tokenizer()), "hidden_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 40,
}  # fmt: skip
"""Sizes of a body that is smaller still."""
_DISENTANGLED = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
KINDS: dict[str, tuple[type, dict[str, Any]]] = {
    "albert": (t.AlbertConfig, {"embedding_size": 16}),
    "bert": (t.BertConfig, {}),
    "bigbird": (t.BigBirdConfig, {"attention_type": "original_full"}),
    "camembert": (t.CamembertConfig, {}),
    "data2vec": (t.Data2VecTextConfig, {}),
    "deberta": (t.DebertaConfig, _DISENTANGLED),
    "deberta-v2": (t.DebertaV2Config, {**_DISENTANGLED, "position_buckets": 16}),
    "distilbert": (t.DistilBertConfig, {}),
    "electra": (t.ElectraConfig, {"embedding_size": 32}),
    "electra, narrow": (t.ElectraConfig, {"embedding_size": 16}),
    "ernie": (t.ErnieConfig, {}),
    "eurobert": (t.EuroBertConfig, {}),
    "gte": (t.GteConfig, {}),
    "longformer": (t.LongformerConfig, {"attention_window": 8}),
    "megatron-bert": (t.MegatronBertConfig, {}),
    "modernbert": (t.ModernBertConfig, {}),
    "mpnet": (t.MPNetConfig, {}),
    "nomic-bert": (t.NomicBertConfig, {}),
    "rembert": (t.RemBertConfig, {"input_embedding_size": 32, "output_embedding_size": 32}),
    "roberta": (t.RobertaConfig, {}),
    "roberta-prelayernorm": (t.RobertaPreLayerNormConfig, {}),
    "roformer": (t.RoFormerConfig, {}),
    "xlm-roberta": (t.XLMRobertaConfig, {}),
    "xlm-roberta-xl": (t.XLMRobertaXLConfig, {}),
    "xmod": (t.XmodConfig, {"languages": ["en_XX"], "default_language": "en_XX"}),
}
OWN_ATTENTION = {
    "bigbird", "deberta", "deberta-v2", "longformer", "megatron-bert", "mpnet",
    "rembert", "roformer",
}  # fmt: skip
"""Kinds that cannot pack: their attention cannot be replaced, even where it is called sdpa."""


def random_body(kind: str) -> PreTrainedModel:
    """Return two layers of width 32 for `letter_pair_tokenizer`, all parameters random."""
    kind_of_config, entries = KINDS[kind]
    tokenizer = letter_pair_tokenizer()
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 66,
        "pad_token_id": tokenizer.pad_token_id,
    }
    sizes |= {"hidden_dim": 64} if kind == "distilbert" else {"intermediate_size": 64}
    config = kind_of_config(**sizes, **entries)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            body = t.AutoModel.from_config(config, add_pooling_layer=False)
        except TypeError:
            body = t.AutoModel.from_config(config)
        for parameter in body.parameters():  # biases and norms too, so that none can be lost
            parameter.data += 0.1 * torch.randn_like(parameter)
    return body


def save(model: PreTrainedModel, folder: Path) -> Path:
    model.save_pretrained(folder)
    letter_pair_tokenizer().save_pretrained(folder)
    return folder
