"""The trained classifier as a folder that Transformers loads without this project."""

from __future__ import annotations

import copy
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

from src.encoders.architecture import PLACES, body_with_our_head
from src.encoders.classifier_head import ClassifierHead
from src.errors import UserError
from src.files.permissions import share_weights

HEAD = "classifier_head.safetensors"
"""Our head, where it lies beside the body."""
LABELS = "labels.json"
"""Label names in index order, in every classifier's folder."""
_INPUTS = ["input_ids", "attention_mask"]
"""What every body is given in training, and so what a tokenizer has to give."""
_TYPES = "token_type_ids"
_AGREEMENT = 1e-3
"""Logits of another head differ by more; those of the same one by some 1e-7."""


def takes_token_types(body: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the body is told, in training as well, which of a pair's texts a token belongs to."""
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
        max_length: longest input in tokens; the tokenizer cuts there when asked to truncate.

    Raises:
        UserError: the head is not a `ClassifierHead`.

    Returns:
        Whether `AutoModelForSequenceClassification.from_pretrained(folder)` is the classifier.
        Where no architecture has body and head in this form (see `architecture`), the folder holds
        the body in Transformers' format and our head beside it, as `classifier_head.safetensors`.
    """
    if not isinstance(head, ClassifierHead):
        raise UserError(f"{type(head).__name__} is not the head of classifier=text")
    folder.mkdir(parents=True, exist_ok=True)
    types = takes_token_types(body, tokenizer)
    _as_trained_with(tokenizer, types, max_length).save_pretrained(folder)
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


def _as_trained_with(
    tokenizer: PreTrainedTokenizerBase, types: bool, max_length: int | None
) -> PreTrainedTokenizerBase:
    """A copy that makes of a text what the body was trained on."""
    tokenizer = copy.deepcopy(tokenizer)
    if max_length is not None:
        tokenizer.model_max_length = max_length
    tokenizer.padding_side = "right"
    # Token types that are not given in training would be new to the body.
    names = [*_INPUTS, _TYPES] if types else list(_INPUTS)
    tokenizer.model_input_names = names
    tokenizer.init_kwargs |= {"model_input_names": names, "padding_side": "right"}
    # What the last call asked for is no property of the tokenizer.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def _as_transformers(
    body: PreTrainedModel, head: ClassifierHead, labels: Sequence[str], types: bool
) -> PreTrainedModel | None:
    """The whole as Transformers' own class; None where none computes the same."""
    own_code = not type(body).__module__.startswith("transformers.")
    found = None if own_code else body_with_our_head(body)
    if found is None:
        return None
    config, place = found.config, PLACES[found.config.model_type]
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.problem_type = "single_label_classification"
    for name, value in [
        *((name, head.dropout.p) for name in place.dropout),
        *place.entries.items(),
    ]:
        setattr(config, name, value)
    model: PreTrainedModel = AutoModelForSequenceClassification.from_config(
        config, trust_remote_code=False
    )
    state = {f"{model.base_model_prefix}.{name}": value for name, value in found.weights.items()}
    for ours, theirs in ((head.dense, place.dense), (head.out, place.out)):
        state |= {f"{theirs}.weight": ours.weight, f"{theirs}.bias": ours.bias}
    try:
        loaded = model.load_state_dict(state, strict=False)
    except RuntimeError:  # of other shapes
        return None
    missing = [name for name in loaded.missing_keys if "position_ids" not in name]
    if missing or loaded.unexpected_keys:
        return None
    return model.eval() if _computes_the_same(model, body, head, types) else None


@torch.no_grad()
def _computes_the_same(
    model: PreTrainedModel, body: PreTrainedModel, head: ClassifierHead, types: bool
) -> bool:
    """Whether logits agree on two made-up inputs, the second of them padded."""
    ids = torch.arange(16).reshape(2, 8) % int(body.config.vocab_size)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    if body.config.pad_token_id is not None:
        ids[ids == int(body.config.pad_token_id)] += 1
        ids[1, 5:] = int(body.config.pad_token_id)
    was_training = body.training, head.training
    for module in (body, head, model):
        module.eval()
    device = next(body.parameters()).device
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types:
        inputs[_TYPES] = (torch.arange(8) >= 4).long().expand(2, 8)
    hidden = body(**{name: value.to(device) for name, value in inputs.items()}).last_hidden_state
    ours: Tensor = head(hidden[:, 0]).float().cpu()
    body.train(was_training[0])
    head.train(was_training[1])
    theirs: Tensor = model(**inputs).logits
    scale = max(1.0, float(ours.abs().max()))
    return bool((ours - theirs).abs().max() <= _AGREEMENT * scale)
