"""Loads a text classifier from the folder of a run, or of any sequence classifier."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from tartan.encoders.classifier_head import ClassifierHead
from tartan.encoders.pretrained import (
    LoadingInfo,
    check_finite_weights,
    check_they_fit,
    load_config,
    load_model,
    load_tokenizer,
)
from tartan.encoders.text_encoder import max_positions_of
from tartan.encoders.transformers_classifier import HEAD, LABELS
from tartan.errors import UserError, first_line
from tartan.files import is_inside, read_bytes

_LONGEST = 1 << 20
"""Largest maximum length that counts as one [tokens]; Transformers writes 1e30 for no limit."""


@dataclass(frozen=True)
class SavedClassifier:
    """A trained classifier, in float32 and evaluation mode.

    Attributes:
        folder: its folder.
        model: Transformers' sequence classifier, or body and head.
        tokenizer: its tokenizer.
        labels: label names in index order.
        max_length: longest input in training; None where the folder does not tell [tokens].
        max_positions: longest input that it can read; None where there is no limit [tokens].
    """

    folder: Path
    model: nn.Module
    tokenizer: PreTrainedTokenizerBase
    labels: tuple[str, ...]
    max_length: int | None
    max_positions: int | None

    @torch.inference_mode()
    def logits(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the logits `(n, classes)` of `n` tokenised texts, on the model's device."""
        found: Tensor = self.model(**inputs).logits
        return found


class _BodyAndHead(nn.Module):
    def __init__(self, body: PreTrainedModel, head: ClassifierHead) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, **inputs: Tensor) -> SequenceClassifierOutput:
        hidden: Tensor = self.body(**inputs).last_hidden_state
        return SequenceClassifierOutput(logits=self.head(hidden[:, 0]))


def classifier_folder(given: Path) -> Path:
    """Return the classifier's folder: `given`, or the one in the run folder `given`.

    Raises:
        UserError: there is no classifier, or it classifies images.
    """
    if not given.exists():
        raise UserError(f"model={given} does not exist; name a run folder or its classifier folder")
    if not given.is_dir():
        raise UserError(f"model={given} is a file; name a run folder or its classifier folder")
    folder = given / "classifier" if (given / "classifier").is_dir() else given
    if not is_inside(folder, given):
        raise UserError(f"{folder} is a link out of {given}; name the folder itself: model=FOLDER")
    if (folder / "pixels.json").is_file():
        raise UserError(f"model={given} is a classifier of images; only texts can be predicted")
    if not (folder / "config.json").is_file():
        unfinished = (given / "config.yaml").is_file() and not (given / "result.json").is_file()
        advice = "its run is not finished" if unfinished else "name a run folder or its classifier"
        raise UserError(f"model={given} holds no classifier (no config.json); {advice}")
    return folder


def load_classifier(given: Path) -> SavedClassifier:
    """Load the classifier of a run folder, or of a folder that holds a sequence classifier.

    Runs no code of the folder, and reads weights from safetensors only.

    Raises:
        UserError: there is no classifier, or it cannot be read.
    """
    folder = classifier_folder(given)
    try:
        tokenizer = load_tokenizer(folder)
        config = load_config(folder)
        separate = (folder / HEAD).is_file()
        model: PreTrainedModel | _BodyAndHead
        model, labels = _body_and_head(folder, config) if separate else _whole(folder)
    except UserError:
        raise
    except Exception as error:  # a damaged configuration leads to errors of any class
        reason = first_line(error)
        raise UserError(
            f"model={given}: the classifier cannot be read ({type(error).__name__}: {reason})"
        ) from error
    if len(set(labels)) < max(2, len(labels)):
        raise UserError(f"model={given}: it needs at least two labels, each with another name")
    body = model.body if isinstance(model, _BodyAndHead) else model
    check_they_fit(tokenizer, body, f"model={given}")
    limit = tokenizer.model_max_length
    return SavedClassifier(
        folder,
        model.eval(),
        tokenizer,
        labels,
        max_length=int(limit) if limit <= _LONGEST else None,
        max_positions=max_positions_of(config),
    )


def _whole(folder: Path) -> tuple[PreTrainedModel, tuple[str, ...]]:
    model, loading = load_model(AutoModelForSequenceClassification, folder)
    if missing := _missing(loading):
        raise ValueError(f"its weights lack {missing}; it is not a sequence classifier")
    labels = tuple(str(model.config.id2label[i]) for i in range(model.config.num_labels))
    if model.config.problem_type not in (None, "single_label_classification"):
        raise ValueError("it does not choose one of several labels for a text")
    return model, labels


def _body_and_head(folder: Path, config: PretrainedConfig) -> tuple[_BodyAndHead, tuple[str, ...]]:
    names = json.loads(read_bytes(folder / LABELS))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{LABELS} has to be a list of names")
    body, loading = load_model(AutoModel, folder)
    if missing := _missing(loading, unused="pooler"):
        raise ValueError(f"its weights lack {missing}; copy the folder again")
    state = load_file(folder / HEAD)
    head = ClassifierHead(int(config.hidden_size), len(names), dropout=0.0)
    head.load_state_dict(state)
    check_finite_weights(head, folder)
    return _BodyAndHead(body, head), tuple(names)


def _missing(loading: LoadingInfo, unused: str | None = None) -> str | None:
    """Return one of the weights that the files lack, other than buffers and `unused`."""
    names = (name for name in loading["missing_keys"] if "position_ids" not in name)
    return min((n for n in names if unused is None or unused not in n), default=None)
