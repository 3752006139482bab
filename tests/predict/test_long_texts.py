"""What a text takes of memory does not follow its length."""

from __future__ import annotations

import csv

from tartan.encoders.saved_classifier import load_classifier
from tartan.predict.predictor import Predictor, device_of


def test_no_more_of_a_long_text_is_tokenised_than_is_read(classifier, monkeypatch):
    predictor = Predictor(load_classifier(classifier), device_of("cpu"), 8, 32)
    tokenizer = type(predictor._classifier.tokenizer)
    given, original = [], tokenizer.__call__

    def watched(self, texts, *args, **kwargs):
        given.append(sum(map(len, texts)))
        return original(self, texts, *args, **kwargs)

    monkeypatch.setattr(tokenizer, "__call__", watched)
    texts = ["red apple, " * 500_000, "short", "x" * 20]
    predictions = predictor.predict(texts)
    assert sum(given) < 5_000
    monkeypatch.undo()
    alone = [predictor.predict([text[:2000]])[0] for text in texts]
    assert abs(predictions - alone).max() < 1e-6


def test_pairs_of_long_texts_are_cut_too(classifier):
    predictor = Predictor(load_classifier(classifier), device_of("cpu"), 64, 32)
    texts = ["a pair of long texts " * 2000] * 4
    assert predictor.predict(texts, texts).shape == (4, 3)


def test_a_long_text_gets_what_it_got_before_the_cut(classifier, predict, tmp_path):
    text = "she said that apples, rivers and stones are 12 kinds of things; " * 3000
    rows = [text, text[:300], "short"]
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text"], *([row] for row in rows)])
    predict(tmp_path / "in.csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        first, second, _ = list(csv.reader(file))[1:]
    assert first[1:] == second[1:]
