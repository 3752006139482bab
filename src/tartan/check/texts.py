"""Looks at texts: their lengths in tokens, and those that occur twice."""

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from tartan.core.seeding import generator_for
from tartan.data.overlap import folded, nearest_duplicates
from tartan.data.prepared import Prepared
from tartan.data.text_task import TextTask

MOST_TEXTS, MOST_CHARACTERS = 5_000, 20_000
"""Number of texts of a source that are tokenised, and of their characters; it takes seconds."""
LOST = 0.01
"""Maximum share of the texts that are cut at the recommended length."""


def labelled_examples(prepared: Prepared) -> pd.DataFrame:
    """Return a row for each example of train, dev and test.

    The columns are `split`, `label` (its name), and for texts `line` (in its file; NA where
    unknown), `text`, and `key`, which is the text regardless of case and white space.
    """
    task, parts = prepared.end_task, []
    for split in ("train", "dev", "test") if prepared.has_test else ("train", "dev"):
        codes = getattr(prepared.splits, split)["label"][:]
        labels = [task.kind.written(code, task.labels) for code in codes]
        part = pd.DataFrame({"split": split, "label": [*map(task.kind.shown, labels)]})
        if isinstance(task, TextTask):
            texts = getattr(task, split)
            part["line"] = pd.array(texts.numbers or [None] * len(part), dtype="Int64")
            part["text"] = texts.whole
            part["key"] = [folded(text) for text in texts.whole]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def sample_of(texts: datasets.Dataset, name: str) -> list[str]:
    """Return the source's texts that are not blank, or a random part; the same at every call."""
    order = generator_for(0, "check", "sample", name).permutation(len(texts))[:MOST_TEXTS]
    filled = filter(None, texts.select(order)["text"])
    return [text[:MOST_CHARACTERS] for text in filled if not text.isspace()]


def lengths(
    samples: Mapping[str, Sequence[str]],
    limits: Mapping[str, int],
    tokenizer: PreTrainedTokenizerBase,
) -> pd.DataFrame:
    """Return the lengths of texts before they are cut, special tokens included [tokens].

    The columns are `median`, `95_%`, `longest`, `max_length`, at which `limits` cuts a source's
    texts, `cut_%` of texts, `enough`, at which less than 1 % are cut, and `unknown_%` of tokens,
    which stand for words that the vocabulary lacks.
    """
    rows = {}
    for source, texts in samples.items():
        encoded = tokenizer(list(texts), verbose=False)["input_ids"]
        sizes = np.array([len(ids) for ids in encoded])
        unknown = sum(ids.count(tokenizer.unk_token_id) for ids in encoded)
        rows[source] = {
            "median": float(np.median(sizes)),
            "95_%": float(np.quantile(sizes, 0.95)),
            "longest": int(sizes.max()),
            "max_length": limits[source],
            "cut_%": 100 * float(np.mean(sizes > limits[source])),
            "enough": enough_length(sizes),
            "unknown_%": 100 * unknown / float(sizes.sum()),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def enough_length(sizes: np.ndarray) -> int:
    """Return the smallest multiple of 8 that less than `LOST` of `sizes` `(texts,)` exceed."""
    may_exceed = int(np.ceil(LOST * len(sizes))) - 1
    return int(-(-np.sort(sizes)[-1 - may_exceed] // 8) * 8)


def repeats(examples: pd.DataFrame) -> pd.DataFrame:
    """Count the texts of each split that occur elsewhere too.

    The columns are `texts`; `repeats` of an earlier text of the split; `in_train`, `in_dev`: texts
    that are also there (NA for the split itself and later ones); `other_label`: texts that train
    has with other labels only (in train itself: texts that have several labels).
    """
    train = examples[examples["split"] == "train"]
    dev = examples.loc[examples["split"] == "dev", "key"]
    several = train.groupby("key")["label"].nunique().gt(1)
    known = pd.MultiIndex.from_frame(train[["key", "label"]])
    rows: dict[str, dict[str, Any]] = {}
    for split, part in examples.groupby("split", sort=False):
        in_train = part["key"].isin(train["key"])
        same_label = pd.MultiIndex.from_frame(part[["key", "label"]]).isin(known)
        contradicted = part["key"].map(several) if split == "train" else in_train & ~same_label
        rows[str(split)] = {
            "texts": len(part),
            "repeats": part["key"].duplicated().sum(),
            "in_train": None if split == "train" else in_train.sum(),
            "in_dev": part["key"].isin(dev).sum() if split == "test" else None,
            "other_label": contradicted.sum(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").astype("Int64")


def same_texts(examples: pd.DataFrame) -> pd.DataFrame:
    """Return the texts that occur more than once or are blank, those with several labels first.

    The columns are `text`, `labels` (their number), and `places`: `SPLIT line LINE (LABEL), ...`.
    """
    chosen = examples[examples["key"].duplicated(keep=False) | (examples["key"] == "")]
    lines = ["" if pd.isna(number) else f" line {number}" for number in chosen["line"]]
    columns = zip(chosen["split"], lines, chosen["label"], strict=True)
    places = [f"{split}{line} ({label})" for split, line, label in columns]
    same = (
        chosen.assign(places=places)
        .groupby("key", sort=False)
        .agg(text=("text", "first"), labels=("label", "nunique"), places=("places", ", ".join))
    )
    return same.sort_values("labels", ascending=False, kind="stable").reset_index(drop=True)


def near_duplicates(examples: pd.DataFrame) -> pd.DataFrame:
    """Return the texts of dev and test that nearly equal one of train, the most similar first.

    Those that equal one, regardless of case and white space, are left out. The columns are `split`,
    `line`, `text`, `train_line`, `train_text` and `similarity` (Jaccard, of runs of three words).
    """
    train = examples[examples["split"] == "train"].reset_index(drop=True)
    parts = examples[(examples["split"] != "train") & ~examples["key"].isin(train["key"])]
    parts = parts.reset_index(drop=True)
    nearest = nearest_duplicates(parts["text"].tolist(), train["text"].tolist())
    near = parts.loc[nearest["text"], ["split", "line", "text"]].reset_index(drop=True)
    others = train.loc[nearest["other"]].reset_index(drop=True)
    near["train_line"], near["train_text"] = others["line"], others["text"]
    near["similarity"] = nearest["similarity"]
    return near.sort_values("similarity", ascending=False, kind="stable", ignore_index=True)
