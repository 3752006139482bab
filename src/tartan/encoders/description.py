"""Describes an encoder in plain values, from which it is rebuilt without its files.

Checkpoints hold the description; the weights are loaded separately.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModel
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from tartan.encoders.base import Encoder
from tartan.encoders.masked_lm_head import MaskedLMHead
from tartan.encoders.pretrained import load_config, load_tokenizer, without_pooler
from tartan.encoders.saved_tokenizer import as_given
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.wide_resnet import ImageEncoder, WideResNet
from tartan.errors import UserError, first_line

TEXT, IMAGES, OTHER = "text", "images", "other"
"""Kinds of encoders; the description of an `OTHER` one holds only its name."""


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Return a description for `encoder_from_description`, of values that JSON can hold.

    It holds the configuration and the contents of the tokenizer's files, or the network's sizes.
    """
    if isinstance(encoder, TextEncoder) and _is_of_transformers(encoder.body):
        head = encoder.mlm_head
        described = None if head is None else {"biases": list(head.biases), "eps": head.norm.eps}
        return {
            "kind": TEXT,
            "name": encoder.name,
            "config": json.loads(encoder.body.config.to_json_string(use_diff=False)),
            "pooler": getattr(encoder.body, "pooler", None) is not None,
            "tokenizer": _files_of(encoder.tokenizer),
            "masked_lm_head": described,
        }
    if isinstance(encoder, ImageEncoder) and isinstance(encoder.body, WideResNet):
        return {
            "kind": IMAGES,
            "name": encoder.name,
            "depth": encoder.body.depth,
            "width": encoder.body.width,
            "dropout": encoder.body.dropout,
            "mean": list(encoder.mean),
            "std": list(encoder.std),
        }
    return {"kind": OTHER, "name": encoder.name}


def encoder_from_description(description: Mapping[str, Any]) -> Encoder:
    """Build the described encoder with random weights.

    Leaves the caller's random state as it was, and runs no code that a configuration may name.

    Raises:
        UserError: the encoder is of kind `OTHER`, or the description is damaged.
    """
    kind, name = description.get("kind"), description.get("name")
    try:
        with torch.random.fork_rng(devices=[]):
            # a head of which the checkpoint has no values is drawn alike every time
            torch.default_generator.manual_seed(0)
            if kind == TEXT:
                return _text_encoder(description)
            if kind == IMAGES:
                mean, std = tuple(description["mean"]), tuple(description["std"])
                body = WideResNet(
                    len(mean),
                    int(description["depth"]),
                    int(description["width"]),
                    float(description.get("dropout", 0.0)),  # earlier versions did not write it
                )
                return ImageEncoder(str(name), body, body.hidden_size, mean, std)
    except (KeyError, TypeError, ValueError, OSError) as error:
        reason = first_line(error)
        raise UserError(
            f"encoder {name} cannot be rebuilt ({type(error).__name__}: {reason}); pass it: "
            "load_from_checkpoint(PATH, encoder=...)"
        ) from error
    raise UserError(
        f"the checkpoint does not describe how to build encoder {name}; pass it: "
        "load_from_checkpoint(PATH, encoder=...)"
    )


def _text_encoder(description: Mapping[str, Any]) -> TextEncoder:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in description["tokenizer"].items():
            (folder / Path(file).name).write_text(text, encoding="utf-8")
        settings = json.dumps(description["config"])
        (folder / "config.json").write_text(settings, encoding="utf-8")
        config, tokenizer = load_config(folder), load_tokenizer(folder)
    build = partial(AutoModel.from_config, config, trust_remote_code=False, dtype=torch.float32)
    body = build() if description["pooler"] else without_pooler(build)
    head, described = None, description["masked_lm_head"]
    if described is not None:
        rows, width = body.get_input_embeddings().weight.shape
        head = MaskedLMHead(
            int(config.hidden_size), rows, width, list(described["biases"]), float(described["eps"])
        )
    return TextEncoder(str(description["name"]), body, tokenizer, head)


def _files_of(tokenizer: Any) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        as_given(tokenizer).save_pretrained(folder)
        files = sorted(path for path in Path(folder).iterdir() if path.is_file())
        return {path.name: path.read_text(encoding="utf-8") for path in files}


def _is_of_transformers(body: nn.Module) -> bool:
    """Return whether the body's class is Transformers' own, not one that came with a checkpoint."""
    kinds = MODEL_MAPPING.get(type(body.config), ())
    return type(body) in (kinds if isinstance(kinds, tuple) else (kinds,))
