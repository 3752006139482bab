"""Finds the licence of an encoder in its files."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.files import parse_yaml, read_bytes

_METADATA = re.compile(r"\s*---\r?\n(.*?)\r?\n---\s", re.DOTALL)
"""The YAML at the beginning of a README on the Hub."""
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
    try:
        content = read_bytes(folder / "README.md").decode("utf-8", errors="replace")
        begun = _METADATA.match(content)
        data = parse_yaml(begun[1]) if begun else None
    except (UserError, ValueError, RecursionError, yaml.YAMLError):  # none of the Hub's form
        return None
    named = [data.get(key) for key in ("license_name", "license")] if isinstance(data, dict) else []
    return next((name for name in named if name and isinstance(name, str)), None)
