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
            found[members] = self._batch({k: [v[i] for i in members] for k, v in encoded.items()})
        return found

    def _tokenised(
        self, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> dict[str, list[list[int]]]:
        """Return the texts' token ids; long texts are cut before they are tokenised."""
        tokenizer = self._classifier.tokenizer
        inputs = [texts] if pairs is None else [texts, pairs]
        types = "token_type_ids" in tokenizer.model_input_names
        encoded: dict[str, list[list[int]]] = defaultdict(list)
        for portion in portions([sum(map(len, own)) for own in zip(*inputs, strict=True)]):
            chosen = [list(own[portion]) for own in inputs]
            for name, values in encode_texts(chosen, tokenizer, self._max_length, types).items():
                encoded[name] += values
        return encoded

    def _batch(self, encoded: dict[str, list[list[int]]]) -> np.ndarray:
        padded = self._classifier.tokenizer.pad(encoded, return_tensors="pt")
        inputs = {name: value.to(self._device) for name, value in padded.items()}
        try:
            logits = self._classifier.logits(inputs)
        except torch.OutOfMemoryError as error:
            raise UserError(
                f"out of memory in a batch of {self._batch_size}; use a smaller batch_size"
            ) from error
        probabilities: np.ndarray = torch.softmax(logits.float(), dim=1).cpu().numpy()
        return probabilities


def device_of(name: str) -> torch.device:
    """Return the device of this name; `auto` is the GPU if there is one, else the CPU.

    Args:
        name: `auto`, `cpu` or `cuda` (or `cuda:1`, ...).

    Raises:
        UserError: there is no such device.
    """
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    there = ["cpu", *(["cuda", *gpus] if gpus else [])]
    if name == "auto":
        return torch.device("cuda" if gpus else "cpu")
    if name not in there:
        raise UserError(f"device={name}: must be one of auto, {', '.join(there)} here")
    return torch.device(name)
