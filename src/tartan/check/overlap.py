"""Finds labelled texts that occur twice: in a split, in two splits, or in an unlabelled corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import pandas as pd

from tartan.data.overlap import NgramIndex, folded, nearest_duplicates
from tartan.data.prepared import Prepared
from tartan.data.text_task import TextTask

_AT_ONCE = 10_000


def labelled_examples(prepared: Prepared) -> pd.DataFrame:
    """Return a row for each example of train, dev and test.

    The columns are `split`, `label` (its name), and for texts `line` (in its file; NA where
    unknown), `text`, and `key`, which is the text regardless of case and white space.
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
    line = chosen["line"].map(lambda number: "" if pd.isna(number) else f" line {number}")
    places = chosen.assign(places=chosen["split"] + line + " (" + chosen["label"] + ")")
    same = places.groupby("key", sort=False).agg(
        text=("text", "first"), labels=("label", "nunique"), places=("places", ", ".join)
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


def in_corpora(
    corpora: Mapping[str, datasets.Dataset], examples: pd.DataFrame, held_out: Sequence[str]
) -> pd.DataFrame:
    """Count what each unlabelled corpus shares with dev and test, of which `held_out` is all texts.

    The columns are `texts` that are not blank; `repeats` of earlier ones; `dev` and `test`: number
    of their texts that it holds; `sharing`: its texts that share 13 words in a row with these.
    """
    grams, rows = NgramIndex(held_out), {}
    known = {split: _hashed(part["key"]) for split, part in examples.groupby("split")}
    for name, texts in corpora.items():
        keys, sharing = [], 0
        for batch in texts.iter(_AT_ONCE):
            filled = [text for text in batch["text"] if text and not text.isspace()]
            sharing += int(grams.contaminates(filled).sum())
            keys.append(_hashed(map(folded, filled)))
        hashed = pd.Series(np.concatenate(keys), dtype="uint64")
        rows[name] = {
            "texts": len(hashed),
            "repeats": hashed.duplicated().sum(),
            **{split: np.isin(known.get(split, []), hashed).sum() for split in ("dev", "test")},
            "sharing": sharing,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _hashed(texts: Any) -> np.ndarray:
    hashed: np.ndarray = pd.util.hash_array(np.array(list(texts), dtype=object))
    return hashed
