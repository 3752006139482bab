"""Writes classifiers and masked language models as folders that Transformers loads by itself.

A head of the architecture's own, or one that equals it, is saved with the body as the
architecture's sequence classifier; another one apart.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tartan.encoders.heads import (
    HEADS_LIKE_THE_PAPERS,
    MASKED_LMS,
    ClassifierHead,
    MaskedLMHead,
    OwnHead,
    TextHead,
    head_parameters,
)
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
    max_length: int | None = None,
) -> str | None:
    """Write a classifier for Transformers, or body and head apart (see `Encoder`)."""
    body, types = encoder.body, encoder.uses_token_types
    export = getattr(head, "exported", None)
    if export is None:
        raise UserError(
            f"save_pretrained writes no {type(head).__name__}, only heads that Classification "
            "makes; keep a checkpoint (trainer.save_checkpoint)"
        )
    head = export()
    assert isinstance(head, TextHead)
    with torch.random.fork_rng(devices=[]):
        model = _sequence_classifier(body, head, labels, types)
    if model is None and isinstance(head, OwnHead):
        raise UserError(
            f"{type(head.model).__name__} does not compute what was trained on {encoder.name}; "
            "keep a checkpoint (trainer.save_checkpoint)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    exported = unused(encoder.tokenizer)
    if max_length is not None:
        exported.model_max_length = max_length
    # it has to tokenise as in training, where the body may have got no token types
    names = ["input_ids", "attention_mask", *([_TYPES] if types else [])]
    exported.padding_side, exported.model_input_names = "right", names
    exported.init_kwargs |= {"model_input_names": names, "padding_side": "right"}
    exported.save_pretrained(folder)
    (folder / LABELS).write_text(json.dumps(list(labels), indent=1) + "\n", encoding="utf-8")
    written = model or merged(body)
    if head.problem_type != TextHead.problem_type:
        written.config.problem_type = head.problem_type
    written.save_pretrained(folder)
    if isinstance(head, ClassifierHead) and model is None:
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
    body: PreTrainedModel, head: TextHead, labels: Sequence[str], types: bool
) -> PreTrainedModel | None:
    """Return the architecture's classifier with this body and head; None if it has no such head."""
    if isinstance(head, OwnHead):
        own = head
    else:  # which many architectures have by other names
        is_of_transformers = type(body).__module__.startswith("transformers.")
        if not is_of_transformers or body.config.model_type not in HEADS_LIKE_THE_PAPERS:
            return None
        assert isinstance(head, ClassifierHead)
        own = OwnHead(body.config, len(labels), head.dropout.p)
        linear = (module for module in own.modules() if isinstance(module, nn.Linear))
        for layer, trained in zip(linear, (head.dense, head.out), strict=True):
            layer.load_state_dict(trained.state_dict())
    config = copy.deepcopy(own.model.config)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.problem_type = head.problem_type
    model: PreTrainedModel = AutoModelForSequenceClassification.from_config(
        config, trust_remote_code=False
    )
    prefix, weights = model.base_model_prefix, merged(body).state_dict()
    # a pooler that the class uses is the head's
    state = {f"{prefix}.{n}": value for n, value in weights.items() if not n.startswith("pooler.")}
    loaded = model.load_state_dict(state | own.model.state_dict(), strict=False)
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
        loaded = model.base_model.load_state_dict(merged(body).state_dict(), strict=False)
        fits = all("position_ids" in n or "pooler" in n for n in loaded.missing_keys)
        (values, _), trained = head_parameters(model), head.state_dict()
        fits &= values.keys() == trained.keys()
        with torch.no_grad():
            for part in values if fits else ():
                values[part].copy_(trained[part])
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
