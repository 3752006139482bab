"""Measures lengths in tokens, what is lost by cutting texts, and which length would lose less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tartan.check.inputs import Source
from tartan.check.sample import Sample
from tartan.data.tokenise import truncation_of
from tartan.encoders.text_encoder import TextEncoder

LOST = 0.01
"""Maximum share of the texts that are cut at the recommended length."""
_STEP = 8
"""The recommended length is a multiple of this."""


@dataclass(frozen=True)
class Lengths:
    """The lengths of a source's texts before they are cut, special tokens included [tokens].

    Attributes:
        source: name of a split, or of an auxiliary task.
        texts: number of texts (blank ones of a corpus not counted).
        whole: whether the quantiles are of all these texts, rather than of a random sample.
        median: median of the lengths.
        p95: 95 % quantile of the lengths.
        longest: greatest length.
        max_length: length at which texts are cut.
        cut: share of all texts that are cut.
        lost: share of all tokens that are cut off.
        enough: recommended `max_length`, at which less than 1 % of the texts are cut.
    """

    source: str
    texts: int
    whole: bool
    median: float
    p95: float
    longest: int
    max_length: int
    cut: float
    lost: float
    enough: int


def lengths_of(source: Source, sample: Sample, encoder: TextEncoder) -> Lengths:
    """Return a summary of the lengths of a source's texts, of which a sample is tokenised."""
    encoded = encoder.tokenizer(
        sample.texts,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # that some are longer than the model reads is what is looked for
    )
    lengths = np.array([len(ids) for ids in encoded["input_ids"]])
    cuts = truncation_of(source.rows)
    return Lengths(
        source=source.name,
        texts=cuts.texts,
        whole=sample.whole,
        median=float(np.median(lengths)),
        p95=float(np.quantile(lengths, 0.95)),
        longest=int(lengths.max()),
        max_length=source.max_length,
        cut=cuts.cut / cuts.texts if cuts.texts else 0.0,
        lost=cuts.lost / cuts.tokens if cuts.tokens else 0.0,
        enough=enough_length(lengths),
    )


def enough_length(lengths: np.ndarray) -> int:
    """Return the smallest multiple of 8 that less than `LOST` of `lengths` `(texts,)` exceed."""
    ordered = np.sort(lengths)
    may_exceed = int(np.ceil(LOST * len(ordered))) - 1
    return int(-(-ordered[-1 - may_exceed] // _STEP) * _STEP)
