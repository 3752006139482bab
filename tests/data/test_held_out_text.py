"""Held-out text is never trained on, whatever corpus it is in, and stays the same."""

from __future__ import annotations

import datasets
import pytest

from tartan.data.corpus import Corpus
from tartan.data.end_task import HeldOutText
from tartan.errors import UserError


def corpus_of(texts, name="corpus"):
    return Corpus(name, datasets.Dataset.from_dict({"text": texts}), fingerprint=name)


def sides(texts, **options):
    kept, apart = HeldOutText(**options).divide(corpus_of(texts))
    return list(kept.texts["text"]), list(apart.texts["text"])


TEXTS = [f"text number {number}" for number in range(2000)]


def test_every_text_is_on_one_side_and_about_the_share_is_held_out():
    kept, apart = sides(TEXTS, share=0.1)
    assert sorted(kept + apart) == sorted(TEXTS)
    assert 150 < len(apart) < 250  # binomial: 200, standard deviation 13


def test_repeats_are_on_one_side_however_they_are_spaced():
    kept, apart = sides([*TEXTS, *(f"  {text.replace(' ', '  ')} " for text in TEXTS)], share=0.3)

    def words(side):
        return {" ".join(text.split()) for text in side}

    assert not words(kept) & words(apart)
    assert words(kept) | words(apart) == set(TEXTS)


def test_no_text_that_another_corpus_holds_out_is_trained_on():
    large, small = TEXTS, TEXTS[:300]
    options = {"share": 0.2, "most": 40}  # of the large one a smaller part is evaluated
    kept_of_large, apart_of_large = sides(large, **options)
    kept_of_small, apart_of_small = sides(small, **options)
    assert 15 < len(apart_of_large) < 70
    assert not {*kept_of_large, *kept_of_small} & {*apart_of_large, *apart_of_small}


def test_what_is_held_out_is_a_function_of_text_and_seed():
    _, apart = sides(TEXTS, share=0.1)
    assert sides(TEXTS[::-1], share=0.1)[1] == apart[::-1]
    assert set(sides(TEXTS, share=0.1, seed=1)[1]) != set(apart)


def test_a_corpus_of_which_one_side_is_empty_is_refused():
    with pytest.raises(UserError, match="has no text held out"):
        HeldOutText(share=0.5).divide(corpus_of(["", " "]))
