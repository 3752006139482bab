"""Prepares a labelled table and any unlabelled texts, however they are given, for a Trainer."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import datasets
import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tartan.data.corpus import Corpus, text_column
from tartan.data.file_task import EmptyLabel, FileTask, KindName
from tartan.data.kinds import KINDS
from tartan.data.prepared import AuxiliaryContext, AuxiliarySettings, Prepared, assemble
from tartan.data.table import Examples, Table, content_digest, table_of
from tartan.data.task_data import BatchSizes, TaskData
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.data.text_task import SplitKind
from tartan.encoders.base import Encoder, EncoderSource
from tartan.encoders.heads import split_masked_lm
from tartan.encoders.pretrained import PackagedEncoder, PretrainedEncoder, load_encoder
from tartan.encoders.text_encoder import TextEncoder, check_body
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.evaluation.metrics import check_metric
from tartan.objectives.classification import Classification, ClassWeights
from tartan.objectives.classification import class_weights as scaled_weights
from tartan.objectives.masked_lm import MaskedLM
from tartan.settings import Below1, Count, Length, Natural, Part, Size, checked

Texts: TypeAlias = (
    str | os.PathLike[str] | datasets.Dataset | pd.DataFrame | pd.Series | Sequence[Any]
    | TextAuxiliary
)  # fmt: skip
"""Unlabelled text: `task` for the labelled texts themselves, a path, a data set, a data frame or
one of its columns, texts or rows; `(objective, text)`; or a whole auxiliary task."""
AnyEncoder: TypeAlias = (
    str | tuple[PreTrainedModel, PreTrainedTokenizerBase] | EncoderSource | Encoder
)
"""An encoder: `minilm`, `tiny`, a name on the Hub, a folder, a model with its tokenizer, ..."""


@dataclass(frozen=True)
class GivenTask(FileTask):
    """An end task whose tables are already open, by split."""

    opened: Mapping[str, Table] = field(default_factory=dict)

    def named_tables(self) -> dict[str, Table]:
        return dict(self.opened)


@dataclass(frozen=True)
class GivenTexts(TextAuxiliary):
    """An auxiliary task on texts that are in memory."""

    corpus: Corpus | None = None

    def domain_corpus(self, size: float | None, context: AuxiliaryContext) -> Corpus:
        return self.corpus or super().domain_corpus(size, context)


class TartanData(TaskData):
    """A LightningDataModule for labelled and unlabelled texts.

    Nothing is read before a module (`MetaTartan.for_data`) or a Trainer asks for it. Steps are
    functions of `seed` and their number: a training can go on from any checkpoint.

    Args:
        train: labelled examples: a file (CSV, TSV, JSONL, JSON, Parquet), a `datasets.Dataset`, a
            pandas `DataFrame`, or rows such as `{"text": ..., "label": ...}` in a list or a torch
            data set.
        dev: the same, for validation and for the meta-gradient; None holds some of train out.
        test: the same, for the one final look; None holds some of train out.
        auxiliaries: auxiliary tasks by name: the text of one of masked language modelling (`task`
            for the labelled training texts themselves (TAPT), or a file, folder or glob, texts or
            rows in a list, a data frame or its column, or a `datasets.Dataset` (DAPT)); or
            `(objective, text)` for another objective, or a whole `TextAuxiliary`.
        encoder: `minilm` (an installed package), a name on the Hugging Face Hub, a folder that
            `save_pretrained` wrote, a Transformers model with its tokenizer in a tuple, or `tiny`
            (random weights, for trying out).
        batch_size: examples of each task in an optimiser step [examples].
        seed: seed of every random draw.
        max_length: longest input; longer texts are cut [tokens].
        metric: chooses the checkpoint: `macro_f1`, `accuracy`, ... (`tartan.evaluation`).
        empty_label: `unlabelled` takes the texts of training rows without a label as unlabelled
            text of the task, which `task` in `auxiliaries` reads too; otherwise they are an error.
        text: the column of texts; None finds it.
        label: the column of labels; None finds it.
        kind: `multi_label` where a text has several labels, or none; `regression` for a number.
        separator: what is between several labels in a column of text.
        text_pair: the column of second texts, which makes pairs; None for single texts.
        dev_share: share of train that becomes dev, where dev is held out of it.
        test_share: share of train that becomes test, where test is held out of it; 0 for no test.
        split: `published` for the splits as they are given or held out; `clean` for new ones, with
            all examples of one text, and near-duplicates of it, in the same split.
        split_seed: seed of the choice of held-out examples, and of clean splits.
        size: unlabelled text that is used, in multiples of the labelled training examples, or
            `all`.
        size_seed: seed of the choice of a part of the unlabelled text.
        column: the column of unlabelled texts, in files and data sets that have several.
        dropout: probability, in the end task's head.
        class_weights: `balanced`, or a weight for each label, by name or in sorted order, or None.
        name: the task's name in messages.
        sizes: other fields of `BatchSizes`: `meta_batch_size`, `micro_batch_size`,
            `evaluation_batch_size`, `packed`, `epoch_steps`.
        num_workers: loader processes; None chooses.
        cache_dir: for tokenised text; None takes `TARTAN_CACHE_DIR`, or `~/.cache/tartan`.
    """

    @checked
    def __init__(
        self,
        train: Examples,
        dev: Examples | None = None,
        test: Examples | None = None,
        *,
        auxiliaries: Mapping[str, Texts] | None = None,
        encoder: AnyEncoder = "minilm",
        batch_size: Count = 32,
        seed: Natural = 0,
        max_length: Length = 128,
        metric: str = "macro_f1",
        empty_label: EmptyLabel = "refused",
        text: str | None = None,
        label: str | Sequence[str] | None = None,
        kind: KindName = "single_label",
        separator: str | None = None,
        text_pair: str | None = None,
        dev_share: Part = 0.2,
        test_share: Below1 = 0.2,
        split: SplitKind = "published",
        split_seed: Natural = 0,
        size: Size = "all",
        size_seed: Natural = 0,
        column: str | None = None,
        dropout: Below1 = 0.1,
        class_weights: ClassWeights = None,
        name: str = "own",
        sizes: Mapping[str, Any] | None = None,
        num_workers: Natural | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        all_sizes = BatchSizes(batch_size=batch_size, **(sizes or {}))
        super().__init__(self._prepare, all_sizes, seed=seed, num_workers=num_workers)
        check_metric(metric, (), "metric", KINDS[kind].named)
        splits = {"train": train, "dev": dev, "test": test}
        self._splits = {split: rows for split, rows in splits.items() if rows is not None}
        self._auxiliaries = dict(auxiliaries or {})
        self._encoder = encoder
        self._task: dict[str, Any] = {
            "name": name, "metric": metric, "max_length": max_length, "text": text,
            "label": label, "text_pair": text_pair, "dev_share": dev_share,
            "test_share": test_share, "split": split, "split_seed": split_seed,
            "empty_label": empty_label, "kind": kind, "separator": separator,
        }  # fmt: skip
        self._size, self._size_seed, self._column = size, size_seed, column
        self._dropout, self._class_weights = dropout, class_weights
        folder = cache_dir or os.environ.get("TARTAN_CACHE_DIR", "~/.cache/tartan")
        self._cache_dir = Path(folder).expanduser()

    def _prepare(self) -> Prepared:
        tables = {split: table_of(rows, split) for split, rows in self._splits.items()}
        task = GivenTask(**self._task, opened=tables).load()
        auxiliaries = {
            name: auxiliary_of(texts, name, self._column, self._size)
            for name, texts in self._auxiliaries.items()
        }
        of_texts = self._column is not None or self._size != "all" or self._size_seed != 0
        if of_texts and all(auxiliary.text == "task" for auxiliary in auxiliaries.values()):
            raise UserError("column, size and size_seed are for unlabelled texts; there are none")
        encoder = encoder_of(self._encoder)
        weights = scaled_weights(
            self._class_weights, task.labels, task.label_counts, "class_weights"
        )
        classification = Classification(len(task.labels), self._dropout, weights)
        classification = task.kind.objective(classification, task.train.labels)
        options = AuxiliarySettings(self._size, self._size_seed)
        context = AuxiliaryContext(task, encoder, options, self._cache_dir)
        return assemble(context, auxiliaries, classification)


def auxiliary_of(texts: Texts, name: str, column: str | None, size: Size) -> TextAuxiliary:
    """Return auxiliary task `name`, of masked language modelling unless `texts` says otherwise.

    To a whole task `column` does not apply, and `size` only where it has none.
    """
    if isinstance(texts, TextAuxiliary):
        return texts
    objective: Any = MaskedLM()
    if isinstance(texts, tuple) and len(texts) == 2 and hasattr(texts[0], "collate"):
        objective, texts = texts
    if isinstance(texts, str) and texts == "task":
        return TextAuxiliary(objective=objective, text="task")
    column = column or "text"
    settings: dict[str, Any] = {"objective": objective, "column": column, "size": size}
    if isinstance(texts, str | os.PathLike):
        return TextAuxiliary(**settings, path=str(texts))
    return GivenTexts(**settings, corpus=_corpus_of(texts, name, column))


def _corpus_of(texts: Any, name: str, column: str) -> Corpus:
    if isinstance(texts, pd.DataFrame):
        texts = texts[column]
    if isinstance(texts, pd.Series):
        texts = texts.astype(object).where(texts.notna(), None).to_list()
    if isinstance(texts, list | tuple):
        # not Path.exists(), which raises an error for a long text
        if texts and all(isinstance(one, str) and os.path.exists(one) for one in texts):  # noqa: PTH110
            raise UserError(f"auxiliary {name} is a list of files; give a folder or a pattern")
        values = [one.get(column) if isinstance(one, Mapping) else one for one in texts]
        if odd := [one for one in values if not isinstance(one, str | None)]:
            raise UserError(f"auxiliary {name} holds no text but {odd[0]!r:.80}")
        kind = datasets.Features({column: datasets.Value("string")})
        texts = datasets.Dataset.from_dict({column: values}, kind)
    if not isinstance(texts, datasets.Dataset):
        raise UserError(f"auxiliary {name}: no texts, path or data set: {type(texts).__name__}")
    texts = text_column(texts, column, name)
    return Corpus(name, texts, content_digest(texts))


def encoder_of(encoder: AnyEncoder) -> Encoder:
    """Load an encoder, in whichever form it is passed."""
    if isinstance(encoder, str | os.PathLike):
        sources: dict[str, EncoderSource] = {"minilm": PackagedEncoder(), "tiny": TinyEncoder()}
        return load_encoder(sources.get(str(encoder)) or PretrainedEncoder(str(encoder)))
    if isinstance(encoder, tuple):
        encoder = _of_model(*encoder)
    elif hasattr(encoder, "load"):
        return load_encoder(cast(EncoderSource, encoder))
    elif not hasattr(encoder, "body"):
        raise UserError(f"encoder must be (model, tokenizer), got {type(encoder).__name__}")
    if isinstance(encoder, TextEncoder):
        check_body(encoder)
    return encoder


def _of_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> TextEncoder:
    name = str(getattr(model.config, "name_or_path", "") or type(model).__name__)
    body, head = model.base_model, None
    if type(model).__name__.endswith(("ForMaskedLM", "ForPreTraining")):
        body, head = split_masked_lm(model, set())
    if tokenizer.pad_token_id is None:
        raise UserError(f"encoder {name}: its tokenizer has no padding token; set pad_token")
    return TextEncoder(name, body.train(), tokenizer, head)
