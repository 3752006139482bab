"""Copies a tokenizer so that its folder keeps all of its settings."""

from __future__ import annotations

import copy

from transformers import PreTrainedTokenizerBase


def as_given(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a copy that `save_pretrained` writes as it was given, before any text was tokenised.

    Transformers writes a side of truncation or the treatment of special tokens only if the
    tokenizer was made with it, and what the last call has set.
    """
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.init_kwargs |= {
        "truncation_side": tokenizer.truncation_side,
        "split_special_tokens": tokenizer.split_special_tokens,
    }
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer
