"""Predicts texts with a saved classifier."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tartan.data.kinds import kind_of_problem
from tartan.data.tokenise import encode_texts
from tartan.encoders.saved_classifier import SavedClassifier


def best_device() -> torch.device:
    """Return the GPU if there is one for CUDA, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Predictor:
    """A classifier that predicts in float32; batches change its results by rounding only.

    `batch_size` texts go through it at once, each cut after `max_length` tokens as in training.
    Logits are divided by the classifier's temperature if `calibrated`.
    """

    def __init__(
        self,
        classifier: SavedClassifier,
        device: torch.device,
        max_length: int,
        batch_size: int = 32,
        calibrated: bool = True,
    ) -> None:
        self._temperature = classifier.temperature if calibrated else 1.0
        self._classifier, self._device = classifier, device
        self._batch_size, self._max_length = batch_size, max_length
        classifier.model.to(device)

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """Return each text's scores, float32 `(texts, labels)`: its labels' probabilities."""
        scores = kind_of_problem(self._classifier.problem_type).scores
        values: np.ndarray = scores(self.logits(texts, pairs) / self._temperature).numpy()
        return values

    def logits(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Tensor:
        """Return each text's logits, float32 `(texts, labels)`, on the CPU."""
        tokenizer = self._classifier.tokenizer
        types = "token_type_ids" in tokenizer.model_input_names
        columns = [list(texts)] if pairs is None else [list(texts), list(pairs)]
        encoded = encode_texts(columns, tokenizer, self._max_length, types)
        # texts of similar length together, which saves padding
        order = sorted(range(len(texts)), key=lambda i: -len(encoded["input_ids"][i]))
        logits = torch.empty(len(texts), len(self._classifier.labels))
        for start in range(0, len(order), self._batch_size):
            members = order[start : start + self._batch_size]
            batch = {name: [values[i] for i in members] for name, values in encoded.items()}
            padded = tokenizer.pad(batch, return_tensors="pt").to(self._device)
            logits[members] = self._classifier.logits(padded).float().cpu()
        return logits
