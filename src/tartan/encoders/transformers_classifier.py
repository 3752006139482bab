"""Writes a trained classifier as a folder that Transformers loads by itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tartan.encoders.architecture import HEAD_LOCATIONS, convert_body
from tartan.encoders.classifier_head import ClassifierHead
from tartan.encoders.saved_tokenizer import as_given
from tartan.errors import UserError
from tartan.files import share_weights
from tartan.kernels.packing import evaluating

HEAD = "classifier_head.safetensors"
"""File of the head where it is saved beside the body."""
LABELS = "labels.json"
"""File of the label names in index order, in every classifier's folder."""
_INPUTS = ["input_ids", "attention_mask"]
"""Inputs that every body gets in training, which the saved tokenizer therefore returns."""
_TYPES = "token_type_ids"
_TOLERANCE = 1e-3
"""Largest difference of logits that count as equal, as a share of the largest logit; rounding makes
about 1e-7, and another head makes more than this.
"""


def uses_token_types(body: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether the inputs of training say which of a pair's texts a token belongs to."""
    kinds = getattr(body.config, "type_vocab_size", 0)
    return _TYPES in tokenizer.model_input_names and (kinds or 0) > 1


def save_classifier(
    body: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    head: nn.Module,
    labels: Sequence[str],
    folder: Path,
    max_length: int | None = None,
) -> bool:
    """Write model, tokenizer and label names to `folder`.

    Args:
        body: the body.
        tokenizer: the body's tokenizer.
        head: a `ClassifierHead`.
        labels: label names in index order.
        folder: the folder to write; created if it does not exist.
        max_length: longest input, at which the tokenizer truncates when asked to; None keeps the
            tokenizer's own limit [tokens].

    Returns:
        Whether `AutoModelForSequenceClassification.from_pretrained(folder)` is the classifier.
        Where no architecture has this body and head (see `architecture`), the folder holds the body
        in Transformers' format, and beside it the head as `classifier_head.safetensors`.

    Raises:
        UserError: the head is not a `ClassifierHead`.
    """
    if not isinstance(head, ClassifierHead):
        raise UserError(
            f"save_pretrained writes no head but the paper's, a ClassifierHead, and this is a "
            f"{type(head).__name__}; keep a checkpoint (trainer.save_checkpoint)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    types = uses_token_types(body, tokenizer)
    _for_export(tokenizer, types, max_length).save_pretrained(folder)
    (folder / LABELS).write_text(json.dumps(list(labels), indent=1) + "\n", encoding="utf-8")
    model = _as_transformers(body, head, labels, types)
    if model is None:
        body.save_pretrained(folder)
        state = {name: value.contiguous() for name, value in head.state_dict().items()}
        save_file(state, folder / HEAD)
    else:
        model.save_pretrained(folder)
    share_weights(folder, LABELS)
    return model is not None


def _for_export(
    tokenizer: PreTrainedTokenizerBase, types: bool, max_length: int | None
) -> PreTrainedTokenizerBase:
    """Return a copy that tokenises as in training: its length limit, padding side and outputs."""
    tokenizer = as_given(tokenizer)
    if max_length is not None:
        tokenizer.model_max_length = max_length
    tokenizer.padding_side = "right"
    # the body must not get token types if it had none in training
    names = [*_INPUTS, _TYPES] if types else list(_INPUTS)
    tokenizer.model_input_names = names
    tokenizer.init_kwargs |= {"model_input_names": names, "padding_side": "right"}
    return tokenizer


def _as_transformers(
    body: PreTrainedModel, head: ClassifierHead, labels: Sequence[str], types: bool
) -> PreTrainedModel | None:
    """Return body and head as Transformers' own class; None where none computes the same."""
    own_code = not type(body).__module__.startswith("transformers.")
    found = None if own_code else convert_body(body)
    if found is None:
        return None
    config, location = found.config, HEAD_LOCATIONS[found.config.model_type]
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.problem_type = "single_label_classification"
    for name, value in [
        *((name, head.dropout.p) for name in location.dropout),
        *location.entries.items(),
    ]:
        setattr(config, name, value)
    model: PreTrainedModel = AutoModelForSequenceClassification.from_config(
        config, trust_remote_code=False
    )
    state = {f"{model.base_model_prefix}.{name}": value for name, value in found.weights.items()}
    for layer, name in ((head.dense, location.dense), (head.out, location.out)):
        state |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
    try:
        loaded = model.load_state_dict(state, strict=False)
    except RuntimeError:  # shapes differ
        return None
    missing = [name for name in loaded.missing_keys if "position_ids" not in name]
    if missing or loaded.unexpected_keys:
        return None
    return model.eval() if _computes_the_same(model, body, head, types) else None


@torch.no_grad()
def _computes_the_same(
    model: PreTrainedModel, body: PreTrainedModel, head: ClassifierHead, types: bool
) -> bool:
    """Return whether the logits agree on two made-up inputs, the second of them padded."""
    ids = torch.arange(16).reshape(2, 8) % int(body.config.vocab_size)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    if body.config.pad_token_id is not None:
        ids[ids == int(body.config.pad_token_id)] += 1
        ids[1, 5:] = int(body.config.pad_token_id)
    device = next(body.parameters()).device
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types:
        inputs[_TYPES] = (torch.arange(8) >= 4).long().expand(2, 8)
    with evaluating(body, head, model):
        arguments = {name: value.to(device) for name, value in inputs.items()}
        hidden = body(**arguments).last_hidden_state
        expected: Tensor = head(hidden[:, 0]).float().cpu()
        logits: Tensor = model(**inputs).logits
    scale = max(1.0, float(expected.abs().max()))
    return bool((expected - logits).abs().max() <= _TOLERANCE * scale)
