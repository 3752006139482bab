"""A small random classifier, and how its predictions are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tartan.encoders.heads import ClassifierHead
from tartan.encoders.tiny import TinyEncoder
from tartan.predict.predict import Counts, Settings, predict_file

LABELS = ("no", "räv", 'a "b", c')
TEXTS = [
    "red apple",
    "",
    "  blanks around  ",
    'she said "yes", and "no"',
    "two\nlines",
    "carriage\r\nreturn",
    "lone\rreturn",
    "ünïcödé 日本語 🦊 \u2028 end",
    "tab\there",
    "\ufeffmark",
    "a long one " * 40,
    "NaN",
    "null",
    "007",
]


@pytest.fixture(scope="session")
def classifier(tmp_path_factory) -> Path:
    """A classifier's folder with a name as run folders have."""
    encoder = TinyEncoder().load()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        head = ClassifierHead(encoder.hidden_size, len(LABELS), 0.1)
        for parameter in head.parameters():
            parameter.data += 0.5 * torch.randn_like(parameter)
    encoded = encoder.tokenizer(TEXTS, padding=True, truncation=True, max_length=32)
    inputs = {name: torch.tensor(encoded[name]) for name in ("input_ids", "attention_mask")}
    with torch.no_grad():  # so that labels differ between texts
        features = encoder.body.eval()(**inputs).last_hidden_state[:, 0]
        head.out.bias -= head.eval()(features).mean(dim=0)
    folder = tmp_path_factory.mktemp("runs") / "task_meta" / "size=10,seed=0" / "classifier"
    encoder.save_classifier(head, LABELS, folder, 32)
    return folder


@pytest.fixture
def predict(classifier):
    """`predict_file` with this classifier; paths and options as on the command line."""

    def call(source: Path | str, target: Path | str, **options: Any) -> Counts:
        settings = {"model": str(classifier), "device": "cpu", **options}
        return predict_file(Settings(input=str(source), output=str(target), **settings))

    return call
