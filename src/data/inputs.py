"""Tokenises texts for a forward pass, in the order in which they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from src.core.task import Inputs
from src.data.tokenise import encode_texts
from src.encoders.text_encoder import TextEncoder
from src.objectives.padding import pad, pad_token_types

Text = str | Sequence[str]
"""A text, or the two texts of a pair."""


def inputs_of(texts: Sequence[Text], encoder: TextEncoder, max_length: int | None) -> Inputs:
    """Return the body's inputs for texts, each int64 `(texts, longest)`.

    These are `input_ids`, `attention_mask` and, for pairs, `token_type_ids`.

    Args:
        texts: single texts or pairs.
        encoder: the encoder that reads them.
        max_length: length at which texts are cut; None for the longest that the body reads
            [tokens].
    """
    paired = bool(texts) and not isinstance(texts[0], str)
    columns: list[list[Any]]
    columns = [list(part) for part in zip(*texts, strict=True)] if paired else [list(texts)]
    length = encoder.max_positions if max_length is None else max_length
    types = paired and encoder.uses_token_types
    found = encode_texts(columns, encoder.tokenizer, length, types)
    ids = [np.asarray(row, dtype=np.int64) for row in found["input_ids"]]
    inputs = pad(ids, int(encoder.tokenizer.pad_token_id))
    if types:
        rows = [{"token_type_ids": own} for own in found["token_type_ids"]]
        inputs |= pad_token_types(rows, inputs["input_ids"].shape[1])
    return inputs
