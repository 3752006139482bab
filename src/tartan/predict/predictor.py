"""Computes the label probabilities of texts with a trained classifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tartan.data.tokenise import encode_texts
from tartan.encoders.saved_classifier import SavedClassifier

_AT_ONCE = 1000
"""Number of texts that are tokenised together."""


class Predictor:
    """A classifier that predicts in float32; batches change its results by rounding only.

    Args:
        classifier: the classifier.
        device: where it predicts.
        batch_size: number of texts that go through it at once.
        max_length: longest input in tokens; longer texts are cut as in training.
    """

    def __init__(
        self, classifier: SavedClassifier, device: torch.device, batch_size: int, max_length: int
    ) -> None:
        self._classifier, self._device = classifier, device
        self._batch_size, self._max_length = batch_size, max_length
        classifier.model.to(device)

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """Return the probabilities of all labels for each text, float32 `(texts, classes)`."""
        columns = [texts] if pairs is None else [texts, pairs]
        probabilities = np.empty((len(texts), len(self._classifier.labels)), dtype=np.float32)
        for start in range(0, len(texts), _AT_ONCE):
            portion = slice(start, start + _AT_ONCE)
            probabilities[portion] = self._predict([list(column[portion]) for column in columns])
        return probabilities

    def _predict(self, columns: list[list[str]]) -> np.ndarray:
        tokenizer = self._classifier.tokenizer
        types = "token_type_ids" in tokenizer.model_input_names
        encoded = encode_texts(columns, tokenizer, self._max_length, types)
        # texts of similar length together, which saves padding
        order = sorted(range(len(columns[0])), key=lambda i: -len(encoded["input_ids"][i]))
        probabilities = np.empty((len(order), len(self._classifier.labels)), dtype=np.float32)
        for start in range(0, len(order), self._batch_size):
            members = order[start : start + self._batch_size]
            batch = {name: [values[i] for i in members] for name, values in encoded.items()}
            padded = tokenizer.pad(batch, return_tensors="pt").to(self._device)
            logits = self._classifier.logits(padded)
            probabilities[members] = torch.softmax(logits.float(), dim=1).cpu().numpy()
        return probabilities
