"""Loads a text classifier from the folder of a run, or of any sequence classifier."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import torch
from pydantic import Field, FiniteFloat
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from tartan.encoders.export import HEAD, LABELS
from tartan.encoders.heads import ClassifierHead, Pooling
from tartan.encoders.onnx_model import ONNX, OnnxModel
from tartan.encoders.safe_loading import (
    check_finite_weights,
    load_config,
    load_model,
    load_tokenizer,
    one_line,
)
from tartan.encoders.text_encoder import TextEncoder, check_tokenizer_fits
from tartan.errors import UserError
from tartan.files import CALIBRATION, Plain, is_inside, read_bytes, read_json

_LONGEST = 1 << 20
"""Largest maximum length that counts as one [tokens]; Transformers writes 1e30 for no limit."""


@dataclass(frozen=True)
class SavedClassifier:
    """A trained classifier in evaluation mode, with label names in index order.

    Its probabilities are the softmax of `logits / temperature`.
    """

    model: nn.Module
    tokenizer: PreTrainedTokenizerBase
    labels: tuple[str, ...]
    max_length: int | None  # longest input in training, if the folder tells [tokens]
    max_positions: int | None  # longest input that it can read, if there is a limit [tokens]
    temperature: float = 1.0  # fitted after the training; 1 where the folder has none
    problem_type: str | None = None  # what logits mean, in Transformers' words; None: one label
    folder: Path = Path()

    @torch.inference_mode()
    def logits(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the logits `(n, classes)` of `n` tokenised texts, on the model's device.

        They are those of the trained module, not divided by the temperature.
        """
        logits: Tensor = self.model(**inputs).logits
        return logits


class _Calibration(Plain):
    temperature: Annotated[FiniteFloat, Field(gt=0)]


class _BodyAndHead(nn.Module):
    def __init__(self, body: PreTrainedModel, head: ClassifierHead) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, **inputs: Tensor) -> SequenceClassifierOutput:
        states: Tensor = self.body(**inputs).last_hidden_state
        logits = self.head.of_texts(states, inputs["attention_mask"])
        return SequenceClassifierOutput(logits=logits)


def load_classifier(path: Path) -> SavedClassifier:
    """Load the classifier of a run folder, or of a folder that holds a sequence classifier."""
    folder = path / "classifier" if (path / "classifier").is_dir() else path
    if not is_inside(folder, path):
        raise UserError(f"{folder} is a link out of {path}; name the folder itself: model=FOLDER")
    with one_line(f"model={path}: the classifier"):
        is_apart, is_onnx = (folder / HEAD).is_file(), (folder / ONNX).is_file()
        load = _onnx if is_onnx else _body_and_head if is_apart else _whole
        model, body, labels = load(folder)
        tokenizer = load_tokenizer(folder)
    problem_type = body.config.problem_type
    least = 2 if problem_type in (None, ClassifierHead.problem_type) else 1
    if len(set(labels)) < max(least, len(labels)):
        raise UserError(f"model={path}: it needs at least two labels, each with another name")
    if not is_onnx:  # which refuses other tokens itself
        check_tokenizer_fits(tokenizer, body, f"model={path}")
    if type(body.config) not in MODEL_FOR_MASKED_LM_MAPPING:
        # decoders look for the last token before the padding, which the tokenizer adds
        body.config.pad_token_id = tokenizer.pad_token_id
    # others, and our own heads, read the first token, or count positions from there
    reads_last = body.config.model_type == "xlnet" and not is_apart
    tokenizer.padding_side = "left" if reads_last else "right"
    limit, file = tokenizer.model_max_length, folder / CALIBRATION
    return SavedClassifier(
        model.eval(),
        tokenizer,
        labels,
        max_length=int(limit) if limit <= _LONGEST else None,
        max_positions=TextEncoder(str(path), body, tokenizer).max_positions,
        temperature=read_json(file, _Calibration).temperature if file.is_file() else 1.0,
        problem_type=problem_type,
        folder=folder,
    )


def _whole(folder: Path) -> tuple[nn.Module, PreTrainedModel, tuple[str, ...]]:
    model, missing = load_model(AutoModelForSequenceClassification, folder)
    _check_complete(missing)
    labels = tuple(str(model.config.id2label[i]) for i in range(model.config.num_labels))
    return model, model, labels


def _body_and_head(folder: Path) -> tuple[nn.Module, PreTrainedModel, tuple[str, ...]]:
    names = json.loads(read_bytes(folder / LABELS))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{LABELS} has to be a list of names")
    config = load_config(folder)
    body, missing = load_model(AutoModel, folder)
    _check_complete({name for name in missing if "pooler" not in name})
    with safe_open(folder / HEAD, "pt") as stored:
        pooling = (stored.metadata() or {}).get("pooling", "first")
    if pooling not in get_args(Pooling):
        raise ValueError(f"{HEAD} has pooling={pooling!r}")
    head = ClassifierHead(int(config.hidden_size), len(names), 0.0, cast(Pooling, pooling))
    head.load_state_dict(load_file(folder / HEAD))
    check_finite_weights(head, folder)
    return _BodyAndHead(body, head), body, tuple(names)


def _onnx(folder: Path) -> tuple[nn.Module, Any, tuple[str, ...]]:
    model = OnnxModel(folder / ONNX, config := load_config(folder))
    return model, model, tuple(str(config.id2label[i]) for i in range(config.num_labels))


def _check_complete(missing: set[str]) -> None:
    lacking = sorted(name for name in missing if "position_ids" not in name)  # which are buffers
    if lacking:
        raise ValueError(f"its weights lack {lacking[0]}; it is not a whole classifier")
