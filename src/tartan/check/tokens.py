"""Measures texts as the encoder reads them: lengths, what is cut, and how words are broken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from tartan.core.seeding import generator_for
from tartan.data.table import until_full

REFERENCE = Path(__file__).with_name("general_english.txt")
"""Seventy everyday sentences, written for this comparison, in English that any encoder knows."""
MOST_TEXTS, MOST_CHARACTERS = 20_000, 4_000_000
"""Size of the sample of a source that is tokenised, which takes seconds."""
LOST = 0.01
"""Maximum share of the texts that are cut at the recommended length."""
MANY = 3
"""Number of pieces from which a word counts as broken."""
MOST_UNKNOWN = 0.02
"""Share of unknown words from which the encoder counts as unable to read a text.

In the paper's English tasks, MiniLM does not know 0.05 % at most. An unknown word is often a single
piece, so that unreadable text would seem to fit well.
"""
_AT_ONCE = 1000
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_MEAN = 15
"""Mean length of words above which they are not separated by spaces [letters]."""


def sample_of(texts: datasets.Dataset, name: str) -> list[str]:
    """Return the source's texts that are not blank, or a random part; the same at every call."""
    order = generator_for(0, "check", "sample", name).permutation(len(texts))[:MOST_TEXTS]
    batches = texts.select(order).iter(_AT_ONCE)
    filled = (text for batch in batches for text in batch["text"] if text and not text.isspace())
    return list(until_full(filled, MOST_TEXTS, MOST_CHARACTERS))


def lengths(
    samples: Mapping[str, Sequence[str]],
    limits: Mapping[str, int],
    tokenizer: PreTrainedTokenizerBase,
) -> pd.DataFrame:
    """Return the lengths of texts before they are cut, special tokens included [tokens].

    The columns are `median`, `95_%`, `longest`, `max_length`, at which `limits` cuts a source's
    texts, `cut_%` of texts, `lost_%` of tokens, and `enough`, at which less than 1 % are cut.
    """
    rows = {}
    for source, texts in samples.items():
        sizes = _pieces(texts, tokenizer, add_special_tokens=True)[1]
        rows[source] = {
            "median": float(np.median(sizes)),
            "95_%": float(np.quantile(sizes, 0.95)),
            "longest": int(sizes.max()),
            "max_length": limits[source],
            "cut_%": 100 * float(np.mean(sizes > limits[source])),
            "lost_%": 100 * float(np.maximum(sizes - limits[source], 0).sum() / sizes.sum()),
            "enough": enough_length(sizes),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def enough_length(sizes: np.ndarray) -> int:
    """Return the smallest multiple of 8 that less than `LOST` of `sizes` `(texts,)` exceed."""
    may_exceed = int(np.ceil(LOST * len(sizes))) - 1
    return int(-(-np.sort(sizes)[-1 - may_exceed] // 8) * 8)


def vocabulary(
    samples: Mapping[str, Sequence[str]], tokenizer: PreTrainedTokenizerBase
) -> pd.DataFrame:
    """Return how the tokenizer breaks words, which are runs of letters, `general English` first.

    The columns are the number of `words`; `pieces` of a word on average; `times`: pieces as a
    multiple of those of general English (NaN where words are not set apart by spaces, or too many
    are unknown); `broken_%`: words in three pieces or more; `unknown_%`: those with a piece that
    the vocabulary lacks; `frequent` broken words.
    """
    reference = REFERENCE.read_text(encoding="utf-8").splitlines()
    rows = {}
    for source, texts in {"general English": reference, **samples}.items():
        counts = Counter(word for text in texts for word in _WORD.findall(text))
        if not counts:
            continue
        words, weights = zip(*counts.most_common(), strict=True)
        encoded, pieces = _pieces([f" {word}" for word in words], tokenizer)
        unknown = np.average([tokenizer.unk_token_id in ids for ids in encoded], weights=weights)
        length = np.average([len(word) for word in words], weights=weights)
        comparable = length <= _LONGEST_MEAN and unknown < MOST_UNKNOWN
        rows[source] = {
            "words": sum(weights),
            "pieces": float(np.average(pieces, weights=weights)),
            "broken_%": 100 * float(np.average(pieces >= MANY, weights=weights)),
            "unknown_%": 100 * float(unknown),
            "comparable": comparable,
            "frequent": " ".join(words[index] for index in np.flatnonzero(pieces >= MANY)[:3]),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    comparable = frame.pop("comparable").astype(bool)
    first = frame["pieces"].iloc[0] if comparable.iloc[0] else np.nan
    frame.insert(2, "times", (frame["pieces"] / first).where(comparable))
    return frame


def _pieces(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, *, add_special_tokens: bool = False
) -> tuple[list[list[int]], np.ndarray]:
    """Return the tokens of each text, of which none is cut, and their number, `(texts,)`."""
    encoded = tokenizer(list(texts), add_special_tokens=add_special_tokens, verbose=False)
    return encoded["input_ids"], np.array([len(ids) for ids in encoded["input_ids"]])
