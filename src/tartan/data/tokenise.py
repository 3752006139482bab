"""Tokenises texts once, into a cached Arrow file that every run memory-maps."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
from filelock import FileLock
from transformers import PreTrainedTokenizerBase

from tartan.core.task import Inputs
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.files import digest_of

Text = str | Sequence[str]
"""A text, or the two texts of a pair."""
_VERSION = "7"  # part of every cache key; raise it when the meaning of a cached file changes
_AT_ONCE = 200  # number of texts that are tokenised together


def check_length(option: str, length: int, encoder: TextEncoder) -> None:
    """Check that `encoder` has positions for inputs of `length` tokens."""
    limit = encoder.max_positions
    if limit is not None and length > limit:
        raise UserError(f"{option}={length}: encoder {encoder.name} reads at most {limit} tokens")


def tokenise(
    texts: datasets.Dataset,
    fingerprint: str,
    encoder: TextEncoder,
    max_length: int,
    cache_dir: Path,
    *,
    keep_blank: bool,
) -> datasets.Dataset:
    """Return rows with `input_ids` and all columns but `text` and `text_pair`, from the cache.

    `fingerprint` changes when the texts change. Inputs are cut at `max_length` tokens, special ones
    included; of a pair, the longer text first. `keep_blank` keeps a blank text as special tokens.
    """
    tokenizer = encoder.tokenizer
    read = [name for name in ("text", "text_pair") if name in texts.column_names]
    token_types = encoder.uses_token_types and len(read) > 1
    ids = ["input_ids", *(["token_type_ids"] if token_types else [])]

    def encode(columns: dict[str, list]) -> dict[str, list]:
        inputs = list(zip(*(columns[name] for name in read), strict=True))
        kept = [
            i
            for i, parts in enumerate(inputs)
            if keep_blank or any(map(str.strip, filter(None, parts)))
        ]
        chosen = {name: [values[i] for i in kept] for name, values in columns.items()}
        encoded: dict[str, list] = {name: [] for name in ids}
        if kept:
            parts = [chosen[name] for name in read]
            encoded = encode_texts(parts, tokenizer, max_length, token_types)
        return encoded | {name: v for name, v in chosen.items() if name not in read}

    key = _key(f"{fingerprint}:{keep_blank}:{len(read)}:{token_types}", tokenizer, max_length)
    path = cache_dir / "tokenised" / f"{key}.arrow"
    path.parent.mkdir(parents=True, exist_ok=True)
    features = dict.fromkeys(ids, datasets.List(datasets.Value("int32")))
    features |= {name: kind for name, kind in texts.features.items() if name not in read}
    with FileLock(path.with_suffix(".lock")):
        return texts.map(
            encode,
            batched=True,
            batch_size=_AT_ONCE,
            remove_columns=read,
            features=datasets.Features(features),
            cache_file_name=str(path),
            load_from_cache_file=True,
            new_fingerprint=key,
            desc=f"Tokenising {len(texts):,} texts",
        )


def tokenised_as_read(
    texts: datasets.Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Return rows with the `input_ids` of `tokenise`, made when they are read; none is blank."""
    return texts.with_transform(
        lambda columns: encode_texts([columns["text"]], tokenizer, max_length)
    )


def encode_texts(
    texts: Sequence[Sequence[str]],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
    token_types: bool = False,
) -> dict[str, list[list[int]]]:
    """Return `input_ids` (and `token_type_ids`) cut at `max_length`; None cuts nothing.

    `texts` are the first texts of all inputs and, for pairs, the second ones.
    """
    encoded = tokenizer(
        *map(list, texts),
        truncation=max_length is not None,
        max_length=max_length,
        return_attention_mask=False,
        return_token_type_ids=token_types,
        verbose=False,
    )
    tokenizer.backend_tokenizer.no_truncation()  # or it would be saved with the tokenizer
    return dict(encoded)


def inputs_of(texts: Sequence[Text], encoder: TextEncoder, max_length: int | None) -> Inputs:
    """Return the body's inputs for texts or pairs, each int64 `(texts, longest)`.

    Texts are cut at `max_length` tokens; None takes the longest that the body reads.
    """
    paired = bool(texts) and not isinstance(texts[0], str)
    columns: list[Any] = list(zip(*texts, strict=True)) if paired else [texts]
    length = encoder.max_positions if max_length is None else max_length
    encoded = encode_texts(columns, encoder.tokenizer, length, paired and encoder.uses_token_types)
    padded = encoder.tokenizer.pad(
        encoded, padding_side="right", return_attention_mask=True, return_tensors="pt"
    )
    return dict(padded)


def _key(form: str, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    # set by the last call, not by the tokenizer's files
    backend.pop("truncation", None)
    backend.pop("padding", None)
    options = [tokenizer.truncation_side, str(tokenizer.split_special_tokens)]
    parts = [_VERSION, form, str(max_length), json.dumps(backend, sort_keys=True), *options]
    return digest_of("\x1f".join(parts))[:32]
