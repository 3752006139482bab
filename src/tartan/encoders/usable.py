"""Loads an encoder of any source, and checks before training that its body can be trained here."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import MODEL_FOR_MASKED_LM_MAPPING, PreTrainedModel

from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import POSITIONS_AFTER_PADDING, TextEncoder
from tartan.errors import UserError, first_line
from tartan.kernels.packing import evaluating

_OF_AN_ENCODER = ("keep_head", "recompute_activations", "save_classifier")


def load_encoder(source: object) -> Encoder:
    """Return the encoder that `source.load()` returns (see `EncoderSource`).

    Raises:
        UserError: there is no `load`, it returns no encoder, or the encoder's body cannot be
            trained (see `check_body`).
    """
    kind, load = type(source).__name__, getattr(source, "load", None)
    if not callable(load):
        raise UserError(
            f"encoder {kind} has no load(), which returns a TextEncoder or an ImageEncoder"
        )
    encoder: Any = load()
    if not isinstance(getattr(encoder, "body", None), nn.Module) or not all(
        callable(getattr(encoder, name, None)) for name in _OF_AN_ENCODER
    ):
        raise UserError(
            f"load() of encoder {kind} returned {type(encoder).__name__}; it has to return a "
            "TextEncoder or an ImageEncoder"
        )
    if isinstance(encoder, TextEncoder):
        check_body(encoder)
    return encoder  # type: ignore[no-any-return]


def check_body(encoder: TextEncoder) -> None:
    """Check that a body gives states of texts, and that the first token's depends on the others.

    The classifier reads the first token's. Architectures that Transformers trains by masked
    language modelling are known to have such states; others are tried out on two short texts.

    Raises:
        UserError: it does not.
    """
    body, what = encoder.body, f"encoder {encoder.name}"
    if not isinstance(body, PreTrainedModel):
        raise UserError(
            f"{what}: its body, {type(body).__name__}, is not a PreTrainedModel of Transformers; "
            "make it a subclass"
        )
    types = {str(p.dtype) for p in body.parameters() if p.is_floating_point()} - {"torch.float32"}
    if types:
        raise UserError(
            f"{what}: its parameters are of type {min(types)}, and training updates float32; "
            "convert them: model.float()"
        )
    embedded, known = _embedded_tokens(body), len(encoder.tokenizer)
    if embedded is not None and embedded < known:
        raise UserError(
            f"{what}: its tokenizer has {known:,} tokens, its body embeddings for {embedded:,}; "
            "give this model's tokenizer, or model.resize_token_embeddings(len(tokenizer))"
        )
    config, pad = body.config, encoder.tokenizer.pad_token_id
    if not encoder.tokenizer.is_fast:
        raise UserError(
            f"{what}: {type(encoder.tokenizer).__name__} is not one of the fast tokenizers (of the "
            "library tokenizers); give a PreTrainedTokenizerFast"
        )
    if config.model_type in POSITIONS_AFTER_PADDING and config.pad_token_id != pad:
        raise UserError(
            f"{what}: its configuration has pad_token_id={config.pad_token_id}, its tokenizer "
            f"{pad}, and its positions are counted from there; build the model with "
            "pad_token_id=tokenizer.pad_token_id"
        )
    if config.model_type == "fnet":
        raise UserError(
            f"{what} (fnet) reads padding, so that its states depend on the other texts of a "
            "batch; use an encoder such as BERT or RoBERTa"
        )
    if not isinstance(getattr(config, "hidden_size", None), int):
        raise UserError(f"{what}: the configuration of its body has no hidden_size")
    if getattr(body, "decoder", None) is not None and getattr(config, "is_encoder_decoder", False):
        raise UserError(
            f"{what} ({config.model_type}) has a decoder too; use an encoder, such as BERT or "
            "RoBERTa"
        )
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False):
        return
    ordinary = encoder.ordinary_tokens[:4]
    if len(ordinary) < 4:
        return  # too few to make texts of
    first = _first_states(encoder, [ordinary[:3], [*ordinary[:2], ordinary[3]]])
    if first[0].equal(first[1]):
        raise UserError(
            f"{what} ({config.model_type}) reads left to right, so its first token, which the "
            "classifier reads, sees nothing of the text; use an encoder such as BERT or RoBERTa"
        )


def _embedded_tokens(body: PreTrainedModel) -> int | None:
    """Return how many tokens a body embeds; None for one that does not say so."""
    try:
        words = body.get_input_embeddings()
    except NotImplementedError:
        return None
    return words.num_embeddings if isinstance(words, nn.Embedding) else None


def _first_states(encoder: TextEncoder, texts: list[list[int]]) -> Tensor:
    """Return the states `(texts, hidden)` of the first tokens of texts of the same length.

    Raises:
        UserError: the body fails, or its states have another shape.
    """
    body, what = encoder.body, f"encoder {encoder.name}: its body, {type(encoder.body).__name__}"
    ids = torch.tensor(texts, device=next(body.parameters()).device)
    try:
        with evaluating(body), torch.no_grad():
            states = body(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        raise UserError(
            f"{what}, fails at input_ids and attention_mask of shape {tuple(ids.shape)}, or "
            f"returns no last_hidden_state ({type(error).__name__}: {first_line(error)})"
        ) from error
    wanted = (*ids.shape, encoder.hidden_size)
    if not isinstance(states, Tensor) or states.shape != wanted:
        shape = tuple(states.shape) if isinstance(states, Tensor) else type(states).__name__
        raise UserError(
            f"{what}, returned states of shape {shape} for {ids.shape[0]} texts of {ids.shape[1]} "
            f"tokens; last_hidden_state has to be {wanted}: texts, tokens, config.hidden_size"
        )
    return states[:, 0]
