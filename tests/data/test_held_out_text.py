"""Held-out text is never trained on, whatever corpus it is in, and stays the same."""

from __future__ import annotations

import datasets
import pytest

from tartan.data.corpus import Corpus
from tartan.data.end_task import HeldOutText
from tartan.errors import UserError

TEXTS = [f"text number {number}" for number in range(2000)]


def sides(texts, **options):
    corpus = Corpus("corpus", datasets.Dataset.from_dict({"text": texts}), fingerprint="corpus")
    return [list(side.texts["text"]) for side in HeldOutText(**options).divide(corpus)]


def test_every_text_is_on_one_side_by_its_content_and_the_seed_alone():
    kept, apart = sides(TEXTS, share=0.1)
    assert sorted(kept + apart) == sorted(TEXTS)
    assert 150 < len(apart) < 250  # binomial: 200, standard deviation 13
    assert sides(TEXTS[::-1], share=0.1)[1] == apart[::-1]
    assert set(sides(TEXTS, share=0.1, seed=1)[1]) != set(apart)


def test_repeats_are_on_one_side_however_they_are_spaced():
    repeats = [f"  {text.replace(' ', '  ')} " for text in TEXTS]
    kept, apart = (
        {" ".join(t.split()) for t in side} for side in sides(TEXTS + repeats, share=0.3)
    )
    assert not kept & apart
    assert kept | apart == set(TEXTS)


def test_no_text_that_another_corpus_holds_out_is_trained_on():
    options = {"share": 0.2, "most": 40}  # of the large one a smaller part is evaluated
    kept_of_large, apart_of_large = sides(TEXTS, **options)
    kept_of_small, apart_of_small = sides(TEXTS[:300], **options)
    assert 15 < len(apart_of_large) < 70
    assert not {*kept_of_large, *kept_of_small} & {*apart_of_large, *apart_of_small}


def test_a_corpus_of_which_one_side_is_empty_is_refused():
    with pytest.raises(UserError, match="has no text held out"):
        sides(["", " "], share=0.5)
