"""The trained classifier as a folder that Transformers loads without this project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import (
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from src.errors import UserError
from src.objectives.classifier_head import ClassifierHead

_LAYERS = {
    # model type: (our dense layer's place, our last layer's place)
    "roberta": ("classifier.dense", "classifier.out_proj"),
    "xlm-roberta": ("classifier.dense", "classifier.out_proj"),
    "camembert": ("classifier.dense", "classifier.out_proj"),
    "bert": ("bert.pooler.dense", "classifier"),
}
"""Where the head of `Classification` fits the architecture's own classifier exactly."""


def save_classifier(
    body: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    head: nn.Module,
    labels: Sequence[str],
    folder: Path,
) -> bool:
    """Write model, tokenizer and label names to `folder`.

    Raises:
        UserError: the head is not a `ClassifierHead`.

    Returns:
        Whether `AutoModelForSequenceClassification.from_pretrained(folder)` is the classifier.
        Where the architecture's own head has another shape, the folder holds the body in
        Transformers' format and our head beside it, as `classifier_head.safetensors`.
    """
    if not isinstance(head, ClassifierHead):
        raise UserError(f"{type(head).__name__} is not the head of classifier=text")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    (folder / "labels.json").write_text(json.dumps(list(labels), indent=1) + "\n", encoding="utf-8")
    layers = _LAYERS.get(body.config.model_type)
    if layers is None:
        body.save_pretrained(folder)
        state = {name: value.contiguous() for name, value in head.state_dict().items()}
        save_file(state, folder / "classifier_head.safetensors")
        return False
    _as_transformers(body, head, labels, *layers).save_pretrained(folder)
    return True


def _as_transformers(
    body: PreTrainedModel, head: ClassifierHead, labels: Sequence[str], dense: str, out: str
) -> PreTrainedModel:
    config = type(body.config).from_dict(body.config.to_dict())
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.classifier_dropout = head.dropout.p
    model: PreTrainedModel = AutoModelForSequenceClassification.from_config(config)
    state = {
        f"{model.base_model_prefix}.{name}": value for name, value in body.state_dict().items()
    }
    for ours, theirs in ((head.dense, dense), (head.out, out)):
        state |= {f"{theirs}.weight": ours.weight, f"{theirs}.bias": ours.bias}
    with torch.no_grad():
        loaded = model.load_state_dict(state, strict=False)
    missing = [name for name in loaded.missing_keys if "position_ids" not in name]
    if missing or loaded.unexpected_keys:
        raise ValueError(f"head does not fit: {missing}, {loaded.unexpected_keys}")
    return model.eval()
