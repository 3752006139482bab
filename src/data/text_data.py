"""Tokenised splits of the end task, as every stage reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import datasets
from transformers import PreTrainedTokenizerBase

from src.data.end_task import EndTask, LabelledTexts
from src.data.tokenise import tokenise


@dataclass(frozen=True)
class TokenisedSplits:
    """Rows of `input_ids`, `label` and `unseen` for each split."""

    train: datasets.Dataset
    dev: datasets.Dataset
    test: datasets.Dataset


def tokenised_splits(
    end_task: EndTask, tokenizer: PreTrainedTokenizerBase, cache_dir: Path
) -> TokenisedSplits:
    """Tokenise the end task's splits, or find them in the cache."""
    # A split's label indices and unseen marks depend on train too.
    together = ":".join(end_task.fingerprints.values())

    def rows(split: str, examples: LabelledTexts) -> datasets.Dataset:
        columns = {
            "text": list(examples.texts),
            "label": list(examples.labels),
            "unseen": list(examples.unseen),
        }
        fingerprint = f"{split}:{together}"
        return tokenise(
            datasets.Dataset.from_dict(columns),
            fingerprint,
            tokenizer,
            end_task.max_length,
            cache_dir,
            keep_blank=True,
        )

    return TokenisedSplits(
        train=rows("train", end_task.train),
        dev=rows("dev", end_task.dev),
        test=rows("test", end_task.test),
    )
