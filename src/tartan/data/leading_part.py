"""Cuts a long text before it is tokenised, such that its first tokens stay the same.

A tokenizer holds some 160 bytes for each character it is given, and a model reads a few hundred
tokens: tokenising the whole of a long text would waste time and memory.

A fast tokenizer splits a text from left to right into added tokens and words, and the tokens of a
word depend on that word alone. What follows a position in the text decides at most how the last
word before it ends, and whether an added token begins before it. So a prefix has the same tokens as
the text, except in its last words and in as many last characters as the longest added token has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

AT_ONCE = 1 << 20
"""Maximum number of characters in texts that are tokenised together."""
_FIRST_TRY = 16
"""Characters per token in the first prefix that is tried; four or five are usual."""
_UNSURE_WORDS = 3
"""Number of words at the end of a prefix whose tokens are not relied on; a tokenizer looks ahead by
one word at most.
"""


def portions(sizes: Sequence[int]) -> Iterator[slice]:
    """Yield slices of consecutive texts that are tokenised together.

    The texts of a slice have at most `AT_ONCE` characters, or the slice is a single longer text.

    Args:
        sizes: number of characters in each text.
    """
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > AT_ONCE:
            yield slice(start, index)
            start, total = index, 0
        total += size
    if sizes:
        yield slice(start, len(sizes))


def leading_parts(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, length: int
) -> list[str]:
    """Return a prefix of each text with the same first `length` tokens; a short text whole.

    All texts are kept whole where the tokenizer cuts from the left, or does not give the positions
    of its tokens.
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
            for i, encoding in zip(members, encoded.encodings, strict=True):
                end = _end_of(encoding, length, _longest_added(tokenizer))
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
    """Return prefixes of the texts of pairs that are cut to the same `length` tokens together.

    Where both texts are longer than that, the one with more tokens keeps an odd one: so the longer
    of the two texts also has the prefix with more tokens.
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


def _end_of(encoding: Encoding, length: int, margin: int) -> int | None:
    """Return where an encoded prefix may end; None if it has too few tokens."""
    if len(encoding) <= length:
        return None
    sure = max((end for _, end in encoding.offsets[:length]), default=0) + margin
    starts = _word_starts(encoding)
    after = [start for start in starts if start >= sure]
    # as many words again at the end of what is kept as are not believed here
    return after[_UNSURE_WORDS] if len(after) > 2 * _UNSURE_WORDS else None


def _word_starts(encoding: Encoding) -> list[int]:
    """Return the positions in the text at which words and added tokens begin, ascending."""
    starts, before = [], object()
    for word, (start, _) in zip(encoding.word_ids, encoding.offsets, strict=True):
        if word is None or word != before:
            starts.append(start)
        before = word
    return starts


def _longest_added(tokenizer: PreTrainedTokenizerBase) -> int:
    added = tokenizer.added_tokens_decoder.values()
    return max((len(token.content) for token in added), default=0)
