"""Lengths in tokens, what cutting loses of them, and where less would be lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from src.check.inputs import Source
from src.check.sample import Sample
from src.data.tokenise import truncation_of
from src.encoders.text_encoder import TextEncoder

LOST = 0.01
"""Share of the texts that may be cut at the length that is advised."""
_STEP = 8
"""The advised length is a multiple of this."""


@dataclass(frozen=True)
class Lengths:
    """Lengths of a source's texts before they are cut, special tokens included.

    Attributes:
        source: a split, or an auxiliary task.
        texts: how many there are (blank ones of a corpus not counted).
        looked_at: how many of them the lengths are of, none of them blank.
        whole: whether these are all that are not blank, not a random sample.
        median: of the lengths.
        p95: their 95 % quantile.
        longest: of those looked at.
        max_length: where they are cut.
        cut: share of all texts that are cut.
        lost: share of all tokens that cutting loses.
        enough: a `max_length` at which less than 1 % of the texts are cut (a multiple of 8).
        readable: the longest input that the encoder reads; None for no limit.
    """

    source: str
    texts: int
    looked_at: int
    whole: bool
    median: float
    p95: float
    longest: int
    max_length: int
    cut: float
    lost: float
    enough: int
    readable: int | None


def token_lengths(texts: list[str], encoder: TextEncoder) -> np.ndarray:
    """Tokens of each text, special ones included, nothing cut: `(texts,)`."""
    encoded = encoder.tokenizer(
        texts,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # that some are longer than the model reads is what is looked for
    )
    return np.fromiter((len(ids) for ids in encoded["input_ids"]), dtype=np.int64)


def lengths_of(
    source: Source, sample: Sample, lengths: np.ndarray, readable: int | None
) -> Lengths:
    """Summarise.

    Args:
        sample: the texts that were tokenised.
        lengths: their lengths, `(texts,)`.
        readable: the longest input that the encoder reads.
    """
    cuts = truncation_of(source.rows)
    return Lengths(
        source=source.name,
        texts=cuts.texts,
        looked_at=len(sample.texts),
        whole=sample.whole,
        median=float(np.median(lengths)),
        p95=float(np.quantile(lengths, 0.95)),
        longest=int(lengths.max()),
        max_length=source.max_length,
        cut=cuts.cut / cuts.texts if cuts.texts else 0.0,
        lost=cuts.lost / cuts.tokens if cuts.tokens else 0.0,
        enough=enough_length(lengths),
        readable=readable,
    )


def enough_length(lengths: np.ndarray) -> int:
    """The smallest multiple of 8 that less than `LOST` of the `lengths` `(texts,)` exceed."""
    ordered = np.sort(lengths)
    may_exceed = int(np.ceil(LOST * len(ordered))) - 1
    return int(-(-ordered[-1 - may_exceed] // _STEP) * _STEP)
