"""The part of a long text that its first tokens are made of.

A tokenizer holds some 160 bytes for each character it is given, and a model reads a few hundred
tokens: a long text is cut before it is tokenised, such that its first tokens stay the same.

Why they do: a fast tokenizer splits a text from left to right into added tokens and words, and the
tokens of a word depend on that word alone. What follows a place of the text decides at most how the
last word before it ends, and whether an added token begins before it. So the tokens of a prefix are
those of the text but for its last words and for as many characters as the longest added token has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

AT_ONCE = 1 << 20
"""Characters of the texts that are tokenised together."""
_FIRST_TRY = 16
"""Characters for each token that are looked at first; four or five are usual."""
_UNSURE_WORDS = 3
"""Words at the end of a prefix that are not believed; a split looks ahead by one at most."""


def portions(sizes: Sequence[int], limit: int = AT_ONCE) -> Iterator[slice]:
    """Consecutive texts that are tokenised together: of `limit` characters at most, or one text.

    Args:
        sizes: characters of each text.
    """
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > limit:
            yield slice(start, index)
            start, total = index, 0
        total += size
    if sizes:
        yield slice(start, len(sizes))


def leading_parts(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, length: int
) -> list[str]:
    """A prefix of each text that has the same first `length` tokens; a short text whole.

    Texts stay whole too where the tokenizer cuts from the left, or cannot say where its tokens come
    from.
    """
    parts = list(texts)
    if not tokenizer.is_fast or tokenizer.truncation_side != "right":
        return parts
    size = _FIRST_TRY * length
    left = [i for i, text in enumerate(texts) if len(text) > size]
    while left:
        undecided = []
        for portion in portions([size] * len(left)):
            members = left[portion]
            prefixes = [texts[i][:size].rstrip() for i in members]
            encoded = tokenizer(
                prefixes, add_special_tokens=False, truncation=False, padding=False, verbose=False
            )
            for i, prefix, encoding in zip(members, prefixes, encoded.encodings, strict=True):
                end = _end_of(encoding, len(prefix), length, _longest_added(tokenizer))
                if end is None:
                    undecided.append(i)
                else:
                    parts[i] = texts[i][:end]
        size *= 2
        left = [i for i in undecided if len(texts[i]) > size]
    return parts


def leading_pairs(
    texts: Sequence[str], pairs: Sequence[str], tokenizer: PreTrainedTokenizerBase, length: int
) -> tuple[list[str], list[str]]:
    """Prefixes of each pair's texts that are cut to the same `length` tokens together.

    Where both are longer than that, which of them has more tokens decides who keeps an odd one:
    the prefixes have more where the texts have.
    """
    firsts = leading_parts(texts, tokenizer, length)
    seconds = leading_parts(pairs, tokenizer, length)
    for i, (first, second) in enumerate(zip(texts, pairs, strict=True)):
        if (firsts[i], seconds[i]) == (first, second):
            continue
        of_first, of_second = (_count(part, tokenizer) for part in (firsts[i], seconds[i]))
        longer = _count(first, tokenizer) > _count(second, tokenizer)
        if longer and of_first <= of_second:
            (firsts[i],) = leading_parts([first], tokenizer, of_second + 1)
        elif not longer and of_first > of_second:
            (seconds[i],) = leading_parts([second], tokenizer, of_first)
        if (_count(firsts[i], tokenizer) > _count(seconds[i], tokenizer)) != longer:
            firsts[i], seconds[i] = first, second
    return firsts, seconds


def _count(text: str, tokenizer: PreTrainedTokenizerBase) -> int:
    encoded = tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)
    return len(encoded["input_ids"])


def _end_of(encoding: Encoding, size: int, length: int, margin: int) -> int | None:
    """Return where a prefix of `size` characters may end; None if too few tokens tell."""
    if len(encoding) <= length:
        return None
    sure = max((end for _, end in encoding.offsets[:length]), default=0) + margin
    starts = _word_starts(encoding)
    after = [start for start in starts if start >= sure]
    # as many words again at the end of what is kept as are not believed here
    return after[_UNSURE_WORDS] if len(after) > 2 * _UNSURE_WORDS else None


def _word_starts(encoding: Encoding) -> list[int]:
    """Return the starts of words and added tokens, in the text's characters, in order."""
    starts, before = [], object()
    for word, (start, _) in zip(encoding.word_ids, encoding.offsets, strict=True):
        if word is None or word != before:
            starts.append(start)
        before = word
    return starts


def _longest_added(tokenizer: PreTrainedTokenizerBase) -> int:
    added = tokenizer.added_tokens_decoder.values()
    return max((len(token.content) for token in added), default=0)
