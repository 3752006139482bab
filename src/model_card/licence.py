"""Finds the licence of an encoder in its files."""

from __future__ import annotations

from pathlib import Path

import yaml
from huggingface_hub import ModelCard

from src.encoders.base import Encoder
from src.encoders.text_encoder import TextEncoder

UNKNOWN = "not stated by its source; check before publishing"


def encoder_licence(encoder: Encoder) -> str:
    """Return the licence that the README beside the encoder's weights names, or `UNKNOWN`."""
    if not isinstance(encoder, TextEncoder):
        return UNKNOWN
    config = encoder.body.config
    named = str(config._name_or_path or "")  # empty: made here, from no folder
    stated = getattr(config, "license", None) or (_of_card(Path(named)) if named else None)
    return str(stated) if stated else UNKNOWN


def _of_card(folder: Path) -> str | None:
    path = folder / "README.md"
    if not path.is_file():
        return None
    try:
        data = ModelCard(path.read_text(encoding="utf-8"), ignore_metadata_errors=True).data
    except (ValueError, yaml.YAMLError):  # no README of the Hub's form
        return None
    named = data.license_name or data.license
    return named if isinstance(named, str) else None
