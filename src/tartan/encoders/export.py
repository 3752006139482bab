"""Writes classifiers and masked language models as folders that Transformers loads by itself.

`ClassifierHead` is dropout, dense, tanh, dropout, linear on the first token's state, or on the mean
of all. Some sequence classifiers of Transformers have exactly the first. DistilBERT's and ELECTRA's
have another activation, but their bodies equal a BERT's, unless ELECTRA's embeddings are narrower
than its layers. Others, and heads on means, are saved apart.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tartan.encoders.heads import MASKED_LMS, ClassifierHead, MaskedLMHead, head_layers
from tartan.encoders.lora import merged, save_adapter
from tartan.errors import UserError
from tartan.files import share_weights
from tartan.kernels.packing import evaluating

if TYPE_CHECKING:
    from tartan.encoders.text_encoder import TextEncoder

HEAD = "classifier_head.safetensors"
"""File of the head where it is saved beside the body."""
LABELS = "labels.json"
"""File of the label names in index order, in every classifier's folder."""
_TYPES = "token_type_ids"
_OTHER_HEAD, _OTHER_ACTIVATION = 1e-3, 1e-4
"""Shares of the largest logit by which another classifier head's, or another activation's, differ;
rounding makes about 1e-6.
"""


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


def convert_body(body: PreTrainedModel) -> tuple[PretrainedConfig, dict[str, Tensor]] | None:
    """Return configuration and weights of a body, or its equal, among `HEAD_LOCATIONS`, or None."""
    source, weights = body.config, dict(merged(body).state_dict())
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
        for pattern, replacement in _FROM_DISTILBERT.items():
            weights = {re.sub(pattern, replacement, name): w for name, w in weights.items()}
        # DistilBERT adds nothing for a token's type
        weights["embeddings.token_type_embeddings.weight"] = torch.zeros(2, source.dim)
    elif source.model_type != "electra" or source.embedding_size != source.hidden_size:
        return None
    return BertConfig(**sizes), weights


def unused(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a copy that `save_pretrained` writes as it was before any text was tokenised."""
    tokenizer = copy.deepcopy(tokenizer)
    for name in ("truncation_side", "split_special_tokens"):  # which it does not write otherwise
        tokenizer.init_kwargs[name] = getattr(tokenizer, name)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def save_classifier(
    encoder: TextEncoder,
    head: nn.Module,
    labels: Sequence[str],
    folder: Path,
    max_length: int | None,
) -> str | None:
    """Write a classifier for Transformers, or body and head apart (see `Encoder`)."""
    if not isinstance(head, ClassifierHead):
        raise UserError(
            f"save_pretrained writes no {type(head).__name__}, only the paper's ClassifierHead; "
            "keep a checkpoint (trainer.save_checkpoint)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    head, body, types = head.exported(), encoder.body, encoder.uses_token_types
    exported = unused(encoder.tokenizer)
    if max_length is not None:
        exported.model_max_length = max_length
    # it has to tokenise as in training, where the body may have got no token types
    names = ["input_ids", "attention_mask", *([_TYPES] if types else [])]
    exported.padding_side, exported.model_input_names = "right", names
    exported.init_kwargs |= {"model_input_names": names, "padding_side": "right"}
    exported.save_pretrained(folder)
    (folder / LABELS).write_text(json.dumps(list(labels), indent=1) + "\n", encoding="utf-8")
    model = _sequence_classifier(body, head, labels, types)
    written = model or merged(body)
    if head.problem_type != ClassifierHead.problem_type:
        written.config.problem_type = head.problem_type
    written.save_pretrained(folder)
    if model is None:
        weights = {name: value.contiguous() for name, value in head.state_dict().items()}
        save_file(weights, folder / HEAD, {"pooling": head.pooling})
    if encoder.adapter is not None and encoder.adapter.keep and model is not None:
        save_adapter(body, model, encoder.name, folder / "adapter")
    share_weights(folder, LABELS)
    if model is not None:
        return None
    return (
        f"{folder.name}/ holds body and head apart: Transformers has no sequence classifier of "
        f"this form for {encoder.name}, and would start a new head; use tartan predict"
    )


def _sequence_classifier(
    body: PreTrainedModel, head: ClassifierHead, labels: Sequence[str], types: bool
) -> PreTrainedModel | None:
    is_of_transformers = type(body).__module__.startswith("transformers.")
    converted = convert_body(body) if is_of_transformers else None
    if converted is None:
        return None
    config, weights = converted
    location = HEAD_LOCATIONS[config.model_type]
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.problem_type = head.problem_type
    config.update({**dict.fromkeys(location.dropout, head.dropout.p), **location.entries})
    model: PreTrainedModel = AutoModelForSequenceClassification.from_config(
        config, trust_remote_code=False
    )
    state = {f"{model.base_model_prefix}.{name}": value for name, value in weights.items()}
    for layer, name in ((head.dense, location.dense), (head.out, location.out)):
        state |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
    try:
        loaded = model.load_state_dict(state, strict=False)
    except RuntimeError:  # shapes differ
        return None
    if loaded.unexpected_keys or not all("position_ids" in name for name in loaded.missing_keys):
        return None
    with evaluating(head):
        same = _same_logits(model, body, head.of_texts, _OTHER_HEAD, types)
    return model if same else None


def check_masked_lm(encoder: TextEncoder) -> None:
    """Check before training that the encoder can be saved afterwards (see `save_masked_lm`)."""
    _masked_lm(encoder.body, encoder.new_mlm_head(), encoder.name)


def save_masked_lm(
    body: PreTrainedModel, head: nn.Module, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Write a folder for Transformers' `AutoModelForMaskedLM` and `AutoTokenizer`."""
    model = _masked_lm(body, head, type(body).__name__)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    unused(tokenizer).save_pretrained(folder)
    share_weights(folder, "config.json")


def _masked_lm(body: PreTrainedModel, head: nn.Module, name: str) -> PreTrainedModel:
    try:
        assert isinstance(head, MaskedLMHead)
        with torch.random.fork_rng(devices=[]):
            model: PreTrainedModel = AutoModelForMaskedLM.from_config(
                copy.deepcopy(body.config), trust_remote_code=False
            )
        dense, norm, decoder = head_layers(model)
        loaded = model.base_model.load_state_dict(merged(body).state_dict(), strict=False)
        fits = all("position_ids" in n or "pooler" in n for n in loaded.missing_keys)
        dense.load_state_dict(head.dense.state_dict())
        norm.load_state_dict(head.norm.state_dict())
        fits &= (decoder.bias is None) == (head.bias is None)
        if fits and head.bias is not None:
            with torch.no_grad():
                decoder.bias.copy_(head.bias)
    except (ValueError, RuntimeError, AssertionError):  # no such class, or shapes differ
        fits = False
    if fits:
        model.tie_weights()
        words = body.get_input_embeddings().weight
        fits = _same_logits(model, body, lambda states, _: head(states, words), _OTHER_ACTIVATION)
    if not fits:
        raise UserError(
            f"Transformers' masked language models cannot hold the head of {name}; use {MASKED_LMS}"
        )
    return model


@torch.no_grad()
def _same_logits(
    model: PreTrainedModel,
    body: PreTrainedModel,
    head_of: Callable[[Tensor, Tensor], Tensor],
    tolerance: float,
    types: bool = False,
) -> bool:
    """Return whether a model, on two made-up texts, computes what the head does on the body."""
    ids = torch.arange(16).reshape(2, 8) % int(body.config.vocab_size)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    if body.config.pad_token_id is not None:
        ids[ids == int(body.config.pad_token_id)] += 1
        ids[1, 5:] = int(body.config.pad_token_id)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types:
        inputs[_TYPES] = (torch.arange(8) >= 4).long().expand(2, 8)
    device = next(body.parameters()).device
    with evaluating(body):
        states = body(**{name: value.to(device) for name, value in inputs.items()})
        expected = head_of(states.last_hidden_state, mask.to(device)).float().cpu()
    logits = model.eval()(**inputs).logits
    if expected.dim() == 3:  # logits of tokens
        expected, logits = expected[mask.bool()], logits[mask.bool()]
    scale = max(1.0, float(expected.abs().max()))
    return float((expected - logits).abs().max()) <= tolerance * scale
