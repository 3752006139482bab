"""Body, masked-LM head and tokenizer as a folder that Transformers loads without this project."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import nn
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerBase

from src.encoders.masked_lm_head import MaskedLMHead, parts_of_head
from src.encoders.text_encoder import TextEncoder
from src.errors import UserError
from src.files.permissions import share_weights

_AGREEMENT = 1e-4
"""Largest difference of equal logits, as a share of the largest logit; some 1e-6 is seen."""


def check_masked_lm(encoder: TextEncoder) -> None:
    """Find before any training whether the encoder can be written once it is trained.

    Raises:
        UserError: Transformers has no masked language model of its architecture whose head is ours.
    """
    _as_transformers(encoder.body, encoder.new_mlm_head(), encoder.name)


def save_masked_lm(
    body: PreTrainedModel,
    head: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    max_length: int | None = None,
) -> None:
    """Write what Transformers' `AutoModelForMaskedLM` and `AutoTokenizer` load.

    Args:
        body: the encoder without a head.
        head: a `MaskedLMHead`, tied to the body's word embeddings.
        folder: made if need be.
        max_length: longest input in tokens that was trained on; the tokenizer cuts there when
            asked to truncate. None leaves the tokenizer's own limit.

    Raises:
        UserError: see `check_masked_lm`; or the head is another.
    """
    if not isinstance(head, MaskedLMHead):
        raise UserError(f"{type(head).__name__} is no masked-LM head")
    model = _as_transformers(body, head, type(body).__name__)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    written = copy.deepcopy(tokenizer)
    if max_length is not None:
        written.model_max_length = max_length
    written.backend_tokenizer.no_truncation()  # what the last call asked for
    written.backend_tokenizer.no_padding()
    written.save_pretrained(folder)
    share_weights(folder, "config.json")


def _as_transformers(body: PreTrainedModel, head: MaskedLMHead, name: str) -> PreTrainedModel:
    """The whole as Transformers' own class, on the CPU and in evaluation mode."""
    try:
        with torch.random.fork_rng():
            model: PreTrainedModel = AutoModelForMaskedLM.from_config(
                copy.deepcopy(body.config), trust_remote_code=False
            )
    except ValueError as error:
        raise UserError(
            f"Transformers has no masked language model of {name}'s architecture "
            f"({body.config.model_type}), so that it could not be kept; use another encoder"
        ) from error
    dense, norm, decoder = parts_of_head(model)
    pairs = [(dense, head.dense), (norm, head.norm)]
    try:
        loaded = model.base_model.load_state_dict(body.state_dict(), strict=False)
        fits = not [n for n in loaded.missing_keys if "position_ids" not in n and "pooler" not in n]
        with torch.no_grad():
            for theirs, ours in pairs:
                for entry in ("weight", "bias"):
                    target, source = getattr(theirs, entry), getattr(ours, entry)
                    fits &= (target is None) == (source is None)
                    if target is not None and source is not None:
                        target.copy_(source)
            fits &= (decoder.bias is None) == (head.bias is None)
            if decoder.bias is not None and head.bias is not None:
                decoder.bias.copy_(head.bias)
    except RuntimeError:  # of other shapes
        fits = False
    model.tie_weights()
    if not fits or not _computes_the_same(model.eval(), body, head):
        raise UserError(
            f"Transformers' {type(model).__name__} has no place for the masked-LM head of {name}; "
            "use a BERT-, RoBERTa-, DistilBERT-, ELECTRA-, MPNet- or ModernBERT-like encoder"
        )
    return model


@torch.no_grad()
def _computes_the_same(model: PreTrainedModel, body: PreTrainedModel, head: MaskedLMHead) -> bool:
    """Whether logits agree on a made-up input, in evaluation mode."""
    special = body.config.pad_token_id or 0
    ids = (torch.arange(8)[None] + special + 1) % int(body.config.vocab_size)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    was_training, device = body.training, next(body.parameters()).device
    body.eval()
    hidden = body(**{n: value.to(device) for n, value in inputs.items()}).last_hidden_state
    ours = head(hidden, body.get_input_embeddings().weight).float().cpu()
    body.train(was_training)
    theirs = model(**inputs).logits
    scale = max(1.0, float(ours.abs().max()))
    return bool((ours - theirs).abs().max() <= _AGREEMENT * scale)
