"""Writes body, masked-LM head and tokenizer as a folder that Transformers loads by itself."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import nn
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerBase

from tartan.encoders.masked_lm_head import MaskedLMHead, head_layers
from tartan.encoders.saved_tokenizer import as_given
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.files import share_weights
from tartan.kernels.packing import evaluating

_TOLERANCE = 1e-4
"""Largest difference of logits that count as equal, as a share of the largest logit; rounding
makes about 1e-6.
"""


def check_masked_lm(encoder: TextEncoder) -> None:
    """Check before training that the encoder can be saved afterwards (see `save_masked_lm`).

    Raises:
        UserError: Transformers has no masked language model with this body and a `MaskedLMHead`.
    """
    _as_transformers(encoder.body, encoder.new_mlm_head(), encoder.name)


def save_masked_lm(
    body: PreTrainedModel,
    head: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
) -> None:
    """Write a folder for Transformers' `AutoModelForMaskedLM` and `AutoTokenizer`.

    Args:
        body: the encoder without a head.
        head: a `MaskedLMHead`, tied to the body's word embeddings.
        tokenizer: the encoder's tokenizer.
        folder: the folder to write; created if it does not exist.

    Raises:
        UserError: Transformers has no masked language model with this body and head, or the head is
            not a `MaskedLMHead`.
    """
    if not isinstance(head, MaskedLMHead):
        raise UserError(f"{type(head).__name__} is not a masked-LM head")
    model = _as_transformers(body, head, type(body).__name__)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    as_given(tokenizer).save_pretrained(folder)
    share_weights(folder, "config.json")


def _as_transformers(body: PreTrainedModel, head: MaskedLMHead, name: str) -> PreTrainedModel:
    """Return body and head as Transformers' own class, on the CPU and in evaluation mode."""
    try:
        with torch.random.fork_rng(devices=[]):
            model: PreTrainedModel = AutoModelForMaskedLM.from_config(
                copy.deepcopy(body.config), trust_remote_code=False
            )
    except ValueError as error:
        raise UserError(
            f"Transformers has no masked language model of {name}'s architecture "
            f"({body.config.model_type}), so it cannot be saved; use another encoder"
        ) from error
    dense, norm, decoder = head_layers(model)
    try:
        loaded = model.base_model.load_state_dict(body.state_dict(), strict=False)
        fits = not [n for n in loaded.missing_keys if "position_ids" not in n and "pooler" not in n]
        dense.load_state_dict(head.dense.state_dict())
        norm.load_state_dict(head.norm.state_dict())
        fits &= (decoder.bias is None) == (head.bias is None)
        if decoder.bias is not None and head.bias is not None:
            with torch.no_grad():
                decoder.bias.copy_(head.bias)
    except RuntimeError:  # shapes differ, or one has a bias alone
        fits = False
    model.tie_weights()
    if not fits or not _computes_the_same(model.eval(), body, head):
        raise UserError(
            f"Transformers' {type(model).__name__} cannot hold the masked-LM head of {name}; "
            "use a BERT-, RoBERTa-, DistilBERT-, ELECTRA-, MPNet- or ModernBERT-like encoder"
        )
    return model


@torch.no_grad()
def _computes_the_same(model: PreTrainedModel, body: PreTrainedModel, head: MaskedLMHead) -> bool:
    """Return whether the logits agree on a made-up input, in evaluation mode."""
    special = body.config.pad_token_id or 0
    ids = (torch.arange(8)[None] + special + 1) % int(body.config.vocab_size)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    device = next(body.parameters()).device
    with evaluating(body, head, model):
        hidden = body(**{n: value.to(device) for n, value in inputs.items()}).last_hidden_state
        expected = head(hidden, body.get_input_embeddings().weight).float().cpu()
        found = model(**inputs).logits
    scale = max(1.0, float(expected.abs().max()))
    return bool((expected - found).abs().max() <= _TOLERANCE * scale)
