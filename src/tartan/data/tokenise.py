"""Tokenises texts once, into an Arrow file in the cache that every run memory-maps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
from tokenizers import Encoding
from transformers import BatchEncoding, PreTrainedTokenizerBase

from tartan.core.task import Inputs
from tartan.data.cache import cached_file
from tartan.data.leading_part import leading_pairs, leading_parts, portions
from tartan.data.remarks import Truncation, total_truncation
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.files import write_with_checksum

Text = str | Sequence[str]
"""A text, or the two texts of a pair."""
_VERSION = "4"
"""Part of every cache key; raise it when the meaning of a cached file changes."""


def check_length(option: str, length: int, encoder: TextEncoder) -> None:
    """Check that `encoder` reads inputs of `length` tokens.

    Raises:
        UserError: the encoder has fewer positions.
    """
    limit = encoder.max_positions
    if limit is not None and length > limit:
        raise UserError(
            f"{option}={length} is more than the {limit} tokens that encoder {encoder.name} "
            f"reads; use at most {limit}"
        )


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

    Where there is a column `text_pair` too, the two texts become one input in the tokenizer's own
    form of pairs, the longer of them being cut first.

    Concurrent runs share the cached file (see `cached_file`).

    Args:
        texts: rows with the column `text`, and `text_pair` where they are pairs.
        fingerprint: string that changes when `texts` change.
        tokenizer: a fast tokenizer.
        max_length: length at which inputs are cut [tokens].
        cache_dir: folder of caches; the rows lie in its `tokenised`.
        keep_blank: whether a blank text stays, as special tokens alone. It does in labelled data,
            where it counts in the metrics; masked language modelling can learn nothing from it.
        token_types: whether pairs also get `token_type_ids`, which tell their texts apart.
    """
    paired = "text_pair" in texts.column_names
    form = f"{keep_blank}:{paired}:{paired and token_types}"
    key = _key(f"{fingerprint}:{form}", tokenizer, max_length)
    path = cache_dir / "tokenised" / f"{key}.arrow"
    counts = path.with_suffix(".json")

    def write(scratch: Path) -> None:
        cuts = _write(texts, tokenizer, max_length, keep_blank, paired and token_types, scratch)
        write_with_checksum(counts, lambda own: own.write_text(json.dumps(cuts._asdict())))

    made = cached_file(path, write, "its texts are tokenised", beside=counts)
    return datasets.Dataset.from_file(str(made))


def tokenised_as_read(
    texts: datasets.Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Return rows with `input_ids` like those of `tokenise`, tokenised whenever they are read.

    Args:
        texts: rows with the column `text`, none of them blank.
    """

    def encode(columns: dict[str, list]) -> dict[str, list]:
        return {"input_ids": encode_texts([columns["text"]], tokenizer, max_length)["input_ids"]}

    return texts.with_transform(encode)


def truncation_of(rows: datasets.Dataset) -> Truncation:
    """Return the counts of what `tokenise` cut off, stored beside the cached rows."""
    (file,) = rows.cache_files
    path = Path(file["filename"]).with_suffix(".json")
    return Truncation(**json.loads(path.read_text(encoding="utf-8")))


def _write(
    texts: datasets.Dataset,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    keep_blank: bool,
    token_types: bool,
    path: Path,
) -> Truncation:
    """Write the tokenised rows, and return the counts of what was cut off."""
    cuts: list[Truncation] = []
    read = [name for name in ("text", "text_pair") if name in texts.column_names]
    special = tokenizer.num_special_tokens_to_add(pair=len(read) > 1)
    made = ["input_ids", *(["token_type_ids"] if token_types else [])]

    def encode(columns: dict[str, list]) -> dict[str, list]:
        inputs = list(zip(*(columns[name] for name in read), strict=True))
        kept = [i for i, own in enumerate(inputs) if keep_blank or not all(map(_is_blank, own))]
        others = {k: [v[i] for i in kept] for k, v in columns.items() if k not in read}
        if not kept:
            return {name: [] for name in made} | others
        rows: dict[str, list] = {name: [] for name in made}
        for portion in portions([sum(len(columns[name][i] or "") for name in read) for i in kept]):
            chosen = [[columns[name][i] for i in kept[portion]] for name in read]
            if len(read) > 1:
                encoded = encode_texts(chosen, tokenizer, max_length, token_types)
                cuts.append(_cuts_of_pairs(encoded["input_ids"], tokenizer, chosen, special))
            else:  # whole, to count what is cut off
                encoded = encode_texts(chosen, tokenizer, max_length, token_types, whole=True)
                cuts.append(_cuts(encoded.encodings, special))
            for name in made:
                rows[name] += encoded[name]
        return rows | others

    features = datasets.Features(
        {
            **{name: datasets.List(datasets.Value("int32")) for name in made},
            **{k: v for k, v in texts.features.items() if k not in read},
        }
    )
    texts.map(
        encode,
        batched=True,
        remove_columns=read,
        features=features,
        cache_file_name=str(path),
        load_from_cache_file=False,
        new_fingerprint=path.stem,
        desc=f"Tokenising {len(texts):,} texts",
    )
    return total_truncation(cuts)


def _is_blank(text: str | None) -> bool:
    return not text or text.isspace()


def _cuts_of_pairs(
    cut: Sequence[Sequence[int]],
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Sequence[str]],
    special: int,
) -> Truncation:
    """Count what was cut off pairs by tokenising them again, whole.

    Their overflow repeats tokens: its size grows with the square of the texts' length.
    """
    whole = tokenizer(*texts, return_attention_mask=False, verbose=False)["input_ids"]
    lost = [len(all_) - len(own) for all_, own in zip(whole, cut, strict=True)]
    tokens = sum(len(own) - special for own in whole)
    return Truncation(len(cut), sum(map(bool, lost)), tokens, sum(lost))


def encode_texts(
    texts: Sequence[list[str]],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
    token_types: bool = False,
    *,
    whole: bool = False,
) -> BatchEncoding:
    """Return token ids, cut at `max_length`; None cuts nothing.

    Of a long text no more is tokenised than the ids depend on (see `tartan.data.leading_part`).

    Args:
        texts: the first texts of all inputs and, for pairs, the second ones.
        tokenizer: a fast tokenizer.
        max_length: maximum number of tokens of an input.
        token_types: whether to return `token_type_ids` too.
        whole: tokenise all of a long text, so that the encodings hold what is cut off.
    """
    if max_length is not None and not whole:
        if len(texts) > 1:
            texts = leading_pairs(texts[0], texts[1], tokenizer, max_length)
        else:
            texts = [leading_parts(texts[0], tokenizer, max_length)]
    return tokenizer(
        *texts,
        truncation=False if max_length is None else "longest_first",
        max_length=max_length,
        return_attention_mask=False,
        return_token_type_ids=token_types,
    )


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
    found = encode_texts(columns, encoder.tokenizer, length, paired and encoder.uses_token_types)
    padded = encoder.tokenizer.pad(
        found, padding_side="right", return_attention_mask=True, return_tensors="pt"
    )
    return dict(padded)


def _cuts(encodings: Sequence[Encoding], special: int) -> Truncation:
    """Count what was cut off single texts, by the overflow that the tokenizer keeps.

    Each encoding, and each part of its overflow, has `special` special tokens, which are not
    counted.
    """
    kept = sum(len(encoding) - special for encoding in encodings)
    over = [encoding.overflowing for encoding in encodings]
    lost = sum(len(part) - special for parts in over for part in parts)
    return Truncation(len(encodings), sum(map(bool, over)), kept + lost, lost)


def _key(fingerprint: str, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    # Set by the last call, not by the tokenizer's files.
    backend.pop("truncation", None)
    backend.pop("padding", None)
    parts = [_VERSION, fingerprint, str(max_length), json.dumps(backend, sort_keys=True)]
    if tokenizer.truncation_side != "right":  # the usual one, without which older keys were made
        parts.append(tokenizer.truncation_side)
    if tokenizer.split_special_tokens:
        parts.append("split_special_tokens")
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
