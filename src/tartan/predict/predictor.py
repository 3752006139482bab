"""Computes the label probabilities of texts with a trained classifier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch

from tartan.data.tokenise import encode_texts, portions
from tartan.encoders.saved_classifier import SavedClassifier
from tartan.errors import UserError


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
        """Return the probabilities of all labels for each text, float32 `(texts, classes)`.

        Texts of similar length are batched together, which saves padding.
        """
        encoded = self._tokenised(texts, pairs)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        order = sorted(range(len(texts)), key=lambda i: lengths[i], reverse=True)
        found = np.empty((len(texts), len(self._classifier.labels)), dtype=np.float32)
        for start in range(0, len(order), self._batch_size):
            members = order[start : start + self._batch_size]
            batch = {name: [values[i] for i in members] for name, values in encoded.items()}
            padded = self._classifier.tokenizer.pad(batch, return_tensors="pt")
            inputs = {name: value.to(self._device) for name, value in padded.items()}
            logits = self._classifier.logits(inputs)
            found[members] = torch.softmax(logits.float(), dim=1).cpu().numpy()
        return found

    def _tokenised(
        self, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> dict[str, list[list[int]]]:
        """Return the texts' token ids; long texts are cut before they are tokenised."""
        tokenizer = self._classifier.tokenizer
        inputs = [texts] if pairs is None else [texts, pairs]
        types = "token_type_ids" in tokenizer.model_input_names
        encoded: dict[str, list[list[int]]] = defaultdict(list)
        for portion in portions([sum(map(len, both)) for both in zip(*inputs, strict=True)]):
            chosen = [list(column[portion]) for column in inputs]
            for name, values in encode_texts(chosen, tokenizer, self._max_length, types).items():
                encoded[name] += values
        return encoded


def device_of(name: str) -> torch.device:
    """Return the device of this name; `auto` is the GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts it
        raise UserError(f"device={name} is none of auto, cpu, cuda, cuda:1, ... here") from error
    return device
