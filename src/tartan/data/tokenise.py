"""Tokenises texts once, into a cached Arrow file that every run memory-maps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from filelock import FileLock
from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from tartan.core.task import Inputs
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError

Text = str | Sequence[str]
"""A text, or the two texts of a pair."""
_VERSION = "5"
"""Part of every cache key; raise it when the meaning of a cached file changes."""
_AT_ONCE = 1 << 20
"""Maximum number of characters that are tokenised together: each takes some 160 bytes."""
_PER_TOKEN = 16
"""Characters per token in the beginning of a long text that is tokenised; four are usual."""
_UNSURE_WORDS = 3
"""Number of words at the end of a cut text whose tokens the rest of the text may change."""


def check_length(option: str, length: int, encoder: TextEncoder) -> None:
    """Check that `encoder` has positions for inputs of `length` tokens."""
    limit = encoder.max_positions
    if limit is not None and length > limit:
        raise UserError(f"{option}={length}: encoder {encoder.name} reads at most {limit} tokens")


def tokenise(
    texts: datasets.Dataset,
    fingerprint: str,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    cache_dir: Path,
    *,
    keep_blank: bool,
    token_types: bool = False,
) -> datasets.Dataset:
    """Return rows with `input_ids` (special tokens included) and all other columns.

    Concurrent runs share the cached file: one writes it, the others wait.

    Args:
        texts: rows with the column `text`, and `text_pair` where they are pairs.
        fingerprint: string that changes when `texts` change.
        tokenizer: a fast tokenizer.
        max_length: length at which inputs are cut; of a pair, the longer text first [tokens].
        cache_dir: folder of caches; the rows lie in its `tokenised`.
        keep_blank: whether a blank text stays, as special tokens alone. It does in labelled data,
            where it counts in the metrics; masked language modelling can learn nothing from it.
        token_types: whether pairs also get `token_type_ids`, which tell their texts apart.
    """
    read = [name for name in ("text", "text_pair") if name in texts.column_names]
    token_types = token_types and len(read) > 1
    ids = ["input_ids", *(["token_type_ids"] if token_types else [])]

    def encode(columns: dict[str, list]) -> dict[str, list]:
        inputs = list(zip(*(columns[name] for name in read), strict=True))
        kept = [i for i, parts in enumerate(inputs) if keep_blank or any(map(_has_words, parts))]
        encoded: dict[str, list] = {name: [] for name in (*ids, "tokens", "lost")}
        for portion in portions([sum(len(text or "") for text in inputs[i]) for i in kept]):
            chosen = [[columns[name][i] for i in kept[portion]] for name in read]
            for name, values in _encoded(chosen, tokenizer, max_length, token_types).items():
                encoded[name] += values
        return encoded | {k: [v[i] for i in kept] for k, v in columns.items() if k not in read}

    key = _key(f"{fingerprint}:{keep_blank}:{len(read)}:{token_types}", tokenizer, max_length)
    path = cache_dir / "tokenised" / f"{key}.arrow"
    path.parent.mkdir(parents=True, exist_ok=True)
    number = datasets.Value("int32")
    features = dict.fromkeys(ids, datasets.List(number)) | {"tokens": number, "lost": number}
    features |= {name: kind for name, kind in texts.features.items() if name not in read}
    with FileLock(path.with_suffix(".lock")):
        rows = texts.map(
            encode,
            batched=True,
            remove_columns=read,
            features=datasets.Features(features),
            cache_file_name=str(path),
            load_from_cache_file=True,
            new_fingerprint=key,
            desc=f"Tokenising {len(texts):,} texts",
        )
    return rows.remove_columns(["tokens", "lost"])


def tokenised_as_read(
    texts: datasets.Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Return rows with the `input_ids` of `tokenise`, tokenised whenever they are read.

    None of the texts, in the column `text`, is blank.
    """

    def encode(columns: dict[str, list]) -> dict[str, list]:
        return {"input_ids": encode_texts([columns["text"]], tokenizer, max_length)["input_ids"]}

    return texts.with_transform(encode)


def truncation_of(rows: datasets.Dataset) -> tuple[int, float]:
    """Return how many of the rows of `tokenise` were cut, and the share of tokens that was lost."""
    (file,) = rows.cache_files
    stored = datasets.Dataset.from_file(file["filename"]).with_format("numpy")
    tokens, lost = np.asarray(stored["tokens"][:]), np.asarray(stored["lost"][:])
    return int((lost > 0).sum()), lost.sum() / max(1, tokens.sum())


def encode_texts(
    texts: Sequence[list[str]],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
    token_types: bool = False,
) -> dict[str, list[list[int]]]:
    """Return `input_ids` (and `token_type_ids`) cut at `max_length`; None cuts nothing.

    `texts` are the first texts of all inputs and, for pairs, the second ones.
    """
    if max_length is not None and len(texts) == 1:
        texts = [list(_beginnings(texts[0], tokenizer, max_length))]
    encoded = _encoded(texts, tokenizer, max_length, token_types)
    return {name: values for name, values in encoded.items() if name.endswith("_ids")}


def inputs_of(texts: Sequence[Text], encoder: TextEncoder, max_length: int | None) -> Inputs:
    """Return the body's inputs for texts or pairs, each int64 `(texts, longest)`.

    These are `input_ids`, `attention_mask` and, for pairs, `token_type_ids`. Texts are cut at
    `max_length` tokens; None takes the longest that the body reads.
    """
    paired = bool(texts) and not isinstance(texts[0], str)
    columns: list[Any] = list(map(list, zip(*texts, strict=True))) if paired else [list(texts)]
    length = encoder.max_positions if max_length is None else max_length
    encoded = encode_texts(columns, encoder.tokenizer, length, paired and encoder.uses_token_types)
    padded = encoder.tokenizer.pad(
        encoded, padding_side="right", return_attention_mask=True, return_tensors="pt"
    )
    return dict(padded)


def portions(sizes: Sequence[int]) -> Iterator[slice]:
    """Yield slices of consecutive texts of at most `_AT_ONCE` characters, or of a single text."""
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > _AT_ONCE:
            yield slice(start, index)
            start, total = index, 0
        total += size
    if sizes:
        yield slice(start, len(sizes))


def _encoded(
    texts: Sequence[list[str]],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
    token_types: bool,
) -> dict[str, list]:
    """Return the columns of `encode_texts`, `tokens` (before cutting) and `lost` (cut off).

    Texts are cut here and not by the tokenizer, whose overflow of pairs would grow with the square
    of their length.
    """
    encodings = tokenizer(
        *texts, truncation=False, padding=False, return_attention_mask=False, verbose=False
    ).encodings
    special = tokenizer.num_special_tokens_to_add(pair=len(texts) > 1)
    columns: dict[str, list] = {"input_ids": [], "tokens": [], "lost": []}
    if token_types:
        columns["token_type_ids"] = []
    for encoding in encodings:
        ids, types, length = encoding.ids, encoding.type_ids if token_types else [], len(encoding)
        lost = 0 if max_length is None else max(0, length - max_length)
        if lost:
            kept = _kept(encoding, length - special - lost, tokenizer.truncation_side)
            ids = [ids[i] for i in kept]
            types = [types[i] for i in kept] if token_types else []
        columns["input_ids"].append(ids)
        columns["tokens"].append(length - special)
        columns["lost"].append(lost)
        if token_types:
            columns["token_type_ids"].append(types)
    return columns


def _kept(encoding: Encoding, budget: int, side: str) -> np.ndarray:
    """Return the positions of special tokens and of `budget` others, the longer text cut first."""
    owners = np.array([-1 if text is None else text for text in encoding.sequence_ids])
    places = [np.flatnonzero(owners == text) for text in (0, 1)]
    first, second = map(len, places)
    shorter = min(first, second, budget // 2)
    counts = (budget - shorter, shorter) if first > second else (shorter, budget - shorter)
    texts = [
        place[len(place) - count :] if side == "left" else place[:count]
        for place, count in zip(places, counts, strict=True)
    ]
    return np.sort(np.concatenate([np.flatnonzero(owners < 0), *texts]))


def _beginnings(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, length: int
) -> Sequence[str]:
    """Return the texts, of long ones a beginning that has the same first `length` tokens.

    A fast tokenizer splits a text from left to right into added tokens and words, and the tokens of
    a word depend on that word alone. So a beginning has the text's tokens, except in its last words
    and in as many characters as the longest added token has.
    """
    size = _PER_TOKEN * length
    long = [i for i, text in enumerate(texts) if len(text) > size]
    if not long or tokenizer.truncation_side != "right":
        return texts
    begun = [texts[i][:size] for i in long]
    encodings = tokenizer(
        begun, add_special_tokens=False, truncation=False, verbose=False
    ).encodings
    added = max(
        (len(token.content) for token in tokenizer.added_tokens_decoder.values()), default=0
    )
    chosen = list(texts)
    for i, text, encoding in zip(long, begun, encodings, strict=True):
        unsure = {word for word in encoding.word_ids[length + added :] if word is not None}
        if len(unsure) > _UNSURE_WORDS:
            chosen[i] = text
    return chosen


def _has_words(text: str | None) -> bool:
    return bool(text) and not str(text).isspace()


def _key(form: str, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    """Return a checksum of all that the tokenised rows depend on."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    # set by the last call, not by the tokenizer's files
    backend.pop("truncation", None)
    backend.pop("padding", None)
    options = [tokenizer.truncation_side, str(tokenizer.split_special_tokens)]
    parts = [_VERSION, form, str(max_length), json.dumps(backend, sort_keys=True), *options]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
