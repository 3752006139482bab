"""Finds labelled texts that occur twice: in a split, in two splits, or in an unlabelled corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import datasets
import numpy as np
import pandas as pd

from tartan.core.seeding import generator_for
from tartan.data.overlap import NgramIndex, folded, nearest_duplicates
from tartan.data.prepared import Prepared
from tartan.data.text_task import TextTask

MOST_CORPUS_TEXTS = 1_000_000
"""Maximum number of a corpus' texts that are compared; of a larger one, a seeded sample."""
_AT_ONCE = 10_000


def labelled_examples(prepared: Prepared) -> pd.DataFrame:
    """Return a row for each example of train, dev and test.

    The columns are `split`, `label` (its name), `line` (in its file; NA where unknown), and for
    texts `text` and `key`, which is the text regardless of case and white space.
    """
    task, parts = prepared.end_task, []
    for split in ("train", "dev", "test") if prepared.has_test else ("train", "dev"):
        rows = getattr(prepared.splits, split).with_format("numpy")
        part = pd.DataFrame({"split": split, "label": np.asarray(task.labels)[rows["label"][:]]})
        if isinstance(task, TextTask):
            texts = getattr(task, split)
            part["line"] = pd.array(texts.numbers or [None] * len(part), dtype="Int64")
            part["text"] = texts.whole
            part["key"] = [folded(text) for text in texts.whole]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def repeats(examples: pd.DataFrame) -> pd.DataFrame:
    """Count the texts of each split that occur elsewhere too.

    Args:
        examples: see `labelled_examples`.

    Returns:
        By split: `texts`; `repeats` of an earlier text of the split; `in_train`, `in_dev`: texts
        that are also there (NA for the split itself and later ones); `other_label`: texts that
        train has with other labels only (in train itself: texts that have several labels).
    """
    train = examples[examples["split"] == "train"]
    several = train.groupby("key")["label"].nunique().gt(1)
    known = pd.MultiIndex.from_frame(train[["key", "label"]])
    rows: dict[str, dict[str, Any]] = {}
    for split, part in examples.groupby("split", sort=False):
        in_train = part["key"].isin(train["key"])
        same_label = pd.MultiIndex.from_frame(part[["key", "label"]]).isin(known)
        dev = examples.loc[examples["split"] == "dev", "key"]
        contradicted = part["key"].map(several) if split == "train" else in_train & ~same_label
        rows[str(split)] = {
            "texts": len(part),
            "repeats": part["key"].duplicated().sum(),
            "in_train": None if split == "train" else in_train.sum(),
            "in_dev": part["key"].isin(dev).sum() if split == "test" else None,
            "other_label": contradicted.sum(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").astype("Int64")


def same_texts(examples: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the texts that occur more than once or are blank, those with several labels first.

    Each has its `text`, the number of its `labels`, and its `places`: split, line, label.
    """
    found = []
    chosen = examples[examples["key"].duplicated(keep=False) | (examples["key"] == "")]
    for _, group in chosen.groupby("key", sort=False):
        places = group[["split", "line", "label"]].astype(object)
        places = places.where(places.notna(), None).to_dict("records")
        labels = int(group["label"].nunique())
        found.append({"text": group["text"].iloc[0], "labels": labels, "places": places})
    return sorted(found, key=lambda one: one["labels"] < 2)


def near_duplicates(examples: pd.DataFrame) -> pd.DataFrame:
    """Return the texts of dev and test that nearly equal one of train, the most similar first.

    Those that equal one, regardless of case and white space, are left out. The columns are `split`,
    `line`, `text`, `train_line`, `train_text` and `similarity` (Jaccard, of runs of three words).
    """
    train = examples[examples["split"] == "train"].reset_index(drop=True)
    parts = []
    for split in ("dev", "test"):
        part = examples[examples["split"] == split]
        part = part[~part["key"].isin(train["key"])].reset_index(drop=True)
        nearest = nearest_duplicates(part["text"].tolist(), train["text"].tolist())
        found = part.loc[nearest["text"], ["split", "line", "text"]].reset_index(drop=True)
        others = train.loc[nearest["other"]].reset_index(drop=True)
        found["train_line"], found["train_text"] = others["line"], others["text"]
        parts.append(found.assign(similarity=nearest["similarity"]))
    every = pd.concat(parts, ignore_index=True)
    return every.sort_values("similarity", ascending=False, kind="stable", ignore_index=True)


def in_corpora(
    corpora: Mapping[str, datasets.Dataset],
    examples: pd.DataFrame,
    held_out: list[str],
    most: int = MOST_CORPUS_TEXTS,
) -> pd.DataFrame:
    """Count what each unlabelled corpus shares with dev and test.

    Args:
        corpora: rows with the column `text`, by name; blank texts do not count.
        examples: see `labelled_examples`.
        held_out: all texts of dev and test, both of each pair.
        most: maximum number of a corpus' texts that are compared.

    Returns:
        By corpus: `texts` that were compared; `repeats` of earlier ones; `dev` and `test`: number
        of their texts that it holds; `sharing`: its texts that share 13 words in a row with these.
    """
    grams, rows = NgramIndex(held_out), {}
    for name, texts in corpora.items():
        if len(texts) > most:
            order = generator_for(0, "check", "corpus", name).permutation(len(texts))
            texts = texts.select(np.sort(order[:most]))
        keys, sharing = [], 0
        for batch in texts.iter(_AT_ONCE):
            filled = [text for text in batch["text"] if text and not text.isspace()]
            sharing += int(grams.contaminates(filled).sum())
            keys.append(pd.util.hash_array(np.array([*map(folded, filled)], dtype=object)))
        hashed = pd.Series(np.concatenate(keys) if keys else [], dtype="uint64")
        known = {
            split: pd.util.hash_array(part["key"].to_numpy(dtype=object))
            for split, part in examples.groupby("split")
        }
        rows[name] = {
            "texts": len(hashed),
            "repeats": hashed.duplicated().sum(),
            **{split: np.isin(known.get(split, []), hashed).sum() for split in ("dev", "test")},
            "sharing": sharing,
        }
    return pd.DataFrame.from_dict(rows, orient="index")
