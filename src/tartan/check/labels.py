"""Reads a run's labelled and unlabelled texts to say which labels are likely wrong or missed."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from omegaconf import DictConfig

from tartan.core.seeding import generator_for
from tartan.data.objective_space import ComposedAuxiliary
from tartan.data.overlap import folded
from tartan.data.prepared import AuxiliaryContext, size_of
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.data.tokenise import inputs_of
from tartan.encoders.pretrained import load_encoder
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.evaluation.label_quality import DOUBTFUL, doubtful_labels, out_of_fold, texts_to_label
from tartan.runs.predictor import Predictor, best_device
from tartan.runs.prepare import auxiliary_settings, named_auxiliaries, take_options_of
from tartan.settings import Count, build, check

MOST_TEXTS = 10_000
"""Maximum number of a source's unlabelled texts that are looked at, a seeded random choice."""
_BATCH = 32


def review(config: DictConfig) -> pd.DataFrame:
    """Return what to read again of the texts of the classifier in `config.model`, or to label.

    With `config.suggest` the rows are that many unlabelled texts (see `texts_to_label`), otherwise
    labelled ones (see `doubtful_labels`): those of the comparison that made the classifier, or by
    regressions on the run's encoder before it was trained, which has not seen the labels.

    Raises:
        UserError: what is needed cannot be read.
    """
    check(config.suggest, Count | None, "suggest")
    model = Path(str(config.model)).expanduser()
    run = model.parent if model.name == "classifier" else model
    for folder in (run, run.parent):
        if config.suggest is None and (folder / DOUBTFUL).is_file():
            return pd.read_csv(folder / DOUBTFUL, dtype=str, keep_default_na=False)
    take_options_of(run, config)
    task = build(config.task, "task").load()
    if not isinstance(task, TextTask) or not task.kind.one_label:
        raise UserError(f"model={model}: a task of single labels for texts is needed")
    encoder = require_text_encoder(load_encoder(build(config.encoder, "encoder")), "check model=")
    if config.suggest is not None:
        return _suggested(config, model, task, encoder)
    examples, labels = _frame(task.train), np.asarray(task.train.labels)
    examples["label"] = np.asarray(task.labels)[labels]
    features = embed(encoder, examples, task.max_length)
    probabilities = out_of_fold(features, _keys(examples).tolist(), labels, int(config.seed))
    return doubtful_labels(examples, probabilities, task.labels)


@torch.inference_mode()
def embed(encoder: TextEncoder, rows: pd.DataFrame, max_length: int) -> NDArray[np.float32]:
    """Return the means over each text's tokens of two layers' states, `(rows, features)`."""
    body = encoder.body.eval().to(device := best_device())
    names = ["text", "text_pair"] if "text_pair" in rows else ["text"]
    inputs = rows[names].apply(tuple, axis=1).tolist() if len(names) > 1 else rows["text"].tolist()
    order = np.argsort([sum(map(len, row)) for row in rows[names].to_numpy()])  # saves padding
    features = []
    for start in range(0, len(order), _BATCH):
        chosen = [inputs[index] for index in order[start : start + _BATCH]]
        batch = {n: t.to(device) for n, t in inputs_of(chosen, encoder, max_length).items()}
        states = body(**batch, output_hidden_states=True).hidden_states
        mask = batch["attention_mask"][..., None].to(states[-1].dtype)
        read = (states[len(states) // 2], states[-2])  # these know more than the last
        means = [(state * mask).sum(dim=1) / mask.sum(dim=1) for state in read]
        features.append(torch.cat(means, dim=1).float().cpu().numpy())
    return np.concatenate(features)[np.argsort(order)]


def _suggested(
    config: DictConfig, model: Path, task: TextTask, encoder: TextEncoder
) -> pd.DataFrame:
    classifier = load_classifier(model)
    if classifier.labels != tuple(task.labels):
        raise UserError(f"model={model} has other labels than task {task.name}; name its task=...")
    pool = _pool(config, task, encoder)
    if not len(pool):
        raise UserError("suggest: there are no unlabelled texts; name some: auxiliary.dapt.path=")
    length = min(classifier.max_length or task.max_length, classifier.max_positions or 1 << 20)
    predictor = Predictor(classifier, best_device(), length)
    pairs = pool["text_pair"].tolist() if "text_pair" in pool else None
    probabilities = predictor.predict(pool["text"].tolist(), pairs)

    def features_of(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return embed(encoder, pool.iloc[rows], task.max_length)

    chosen = texts_to_label(probabilities, features_of, int(config.suggest), int(config.seed))
    frame = pool.iloc[chosen].reset_index(drop=True)
    frame["predicted"] = np.asarray(task.labels)[probabilities[chosen].argmax(axis=1)]
    frame["probability"] = probabilities[chosen].max(axis=1)
    return frame


def _pool(config: DictConfig, task: TextTask, encoder: TextEncoder) -> pd.DataFrame:
    """Return the unlabelled texts of task and domain, none twice and none that has a label."""
    sources = [pd.DataFrame({"text": []}, dtype=str)]
    if task.unlabelled is not None:
        sources.append(_frame(task.unlabelled))
    cache = Path(config.cache_dir).expanduser()
    context = AuxiliaryContext(task, encoder, auxiliary_settings(config), cache)
    corpora: list[TextAuxiliary] = []
    for name, auxiliary in named_auxiliaries(config).items() if task.train.pairs is None else ():
        own: Any = auxiliary.source.text if isinstance(auxiliary, ComposedAuxiliary) else auxiliary
        is_text = isinstance(own, TextAuxiliary) and own.kind == "domain" and not own.left_out
        if is_text and own not in corpora:  # several objectives share one
            corpora.append(own)
            size, _ = size_of(name, own.size, context.options.size)
            rows = own.domain_corpus(size, context).texts
            order = generator_for(int(config.seed), "check", "pool").permutation(len(rows))
            texts = [text or "" for text in rows.select(order[:MOST_TEXTS])["text"]]
            sources.append(pd.DataFrame({"text": texts}))
    pool = pd.concat(sources, ignore_index=True)
    keys = _keys(pool)
    labelled = [_keys(_frame(split)) for split in (task.train, task.dev, task.test)]
    taken = keys.isin(pd.concat(labelled)) | keys.duplicated() | (keys == "")
    return pool[~taken].reset_index(drop=True)


def _frame(texts: LabelledTexts) -> pd.DataFrame:
    columns = {"line": texts.numbers, "text": texts.texts, "text_pair": texts.pairs}
    return pd.DataFrame({name: column for name, column in columns.items() if column is not None})


def _keys(rows: pd.DataFrame) -> pd.Series:
    """Return each row's whole text regardless of case and white space."""
    whole = rows["text"] + "\n" + rows["text_pair"] if "text_pair" in rows else rows["text"]
    return whole.map(folded)
