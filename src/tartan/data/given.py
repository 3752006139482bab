"""Turns what a program passes (paths, lists, data sets, models) into tasks and encoders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import datasets
import pandas as pd
from torch.utils.data import ConcatDataset, DataLoader, Subset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tartan.data.corpus import Corpus, text_column, texts_of
from tartan.data.file_task import FileTask
from tartan.data.table.arrow import content_digest, table_of_dataset
from tartan.data.table.base import JoinedTables, MemoryTable, Table, check_names
from tartan.data.table.open import open_table
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.data.text_task import TextTask
from tartan.encoders.base import Encoder, EncoderSource
from tartan.encoders.heads import split_masked_lm
from tartan.encoders.pretrained import PackagedEncoder, PretrainedEncoder, load_encoder
from tartan.encoders.text_encoder import TextEncoder, check_body
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM
from tartan.settings import Size

OWN_TEXT: Final = "task"
"""Value that stands for the labelled training texts where unlabelled text is asked for (TAPT)."""

Examples: TypeAlias = (
    str | os.PathLike[str] | datasets.Dataset | pd.DataFrame | DataLoader[Any] | Iterable[Any]
)
"""Labelled examples: a file or several, a data set, a data frame, or rows (`{"text": ..., "label":
...}`, or tuples)."""
Texts: TypeAlias = (
    str | os.PathLike[str] | datasets.Dataset | pd.DataFrame | pd.Series | Sequence[Any]
    | TextAuxiliary
)  # fmt: skip
"""Unlabelled text: `task` for the labelled texts themselves, a path, a data set, a data frame or
one of its columns, texts, or rows with a text; with another objective than masked language
modelling `(objective, text)`; or a whole auxiliary task."""
AnyEncoder: TypeAlias = (
    str | tuple[PreTrainedModel, PreTrainedTokenizerBase] | EncoderSource | Encoder
)
"""An encoder: `minilm`, `tiny`, a name on the Hub, a folder, a model with its tokenizer, ..."""


@dataclass(frozen=True)
class GivenTask(FileTask):
    """An end task whose tables are already open.

    Attributes:
        tables: the tables by split; where dev or test is missing, it is held out of train.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)

    prefix = ""

    def tables_by_split(self) -> Mapping[str, Table]:
        return self.tables


@dataclass(frozen=True)
class GivenTexts(TextAuxiliary):
    """An auxiliary task on texts that are in memory.

    Attributes:
        corpus: the texts.
    """

    corpus: Corpus | None = None

    def _domain_corpus(
        self, end_task: TextTask | None, size: float | None, cache_dir: Path
    ) -> Corpus:
        return self.corpus or super()._domain_corpus(end_task, size, cache_dir)


def table_of(examples: Examples, name: str) -> Table:
    """Return labelled examples as a table; `name` is their argument's, for messages."""
    if isinstance(examples, str | os.PathLike):
        return open_table(Path(examples))
    if isinstance(examples, DataLoader):
        examples = examples.dataset
    examples = _whole(examples)
    if isinstance(examples, datasets.Dataset):
        return table_of_dataset(name, examples)
    if isinstance(examples, pd.DataFrame):
        return MemoryTable(_rows_of_frame(examples, name), name)
    if isinstance(examples, Mapping):
        raise UserError(f"{name} must be a path, a list of rows or a data set, not a mapping")
    if hasattr(examples, "__getitem__"):  # a torch data set has no iterator
        examples = [examples[index] for index in range(len(examples))]
        if examples and all(isinstance(row, str | os.PathLike) for row in examples):
            return JoinedTables([open_table(Path(row)) for row in examples])
    return MemoryTable(examples, name)


def _whole(examples: Any) -> Any:
    """Return parts, joined parts or a stream of data sets as one, which knows the labels' names."""
    if isinstance(examples, Subset):
        whole = _whole(examples.dataset)
        return whole.select(examples.indices) if isinstance(whole, datasets.Dataset) else examples
    if isinstance(examples, ConcatDataset):
        parts = [_whole(part) for part in examples.datasets]
        if all(isinstance(part, datasets.Dataset) for part in parts):
            return datasets.concatenate_datasets(parts)
    if isinstance(examples, datasets.IterableDataset):
        return datasets.Dataset.from_list(list(examples), features=examples.features)
    return examples


def auxiliary_of(texts: Texts, name: str, column: str | None, size: Size) -> TextAuxiliary:
    """Return auxiliary task `name`: of masked language modelling, unless one is passed whole.

    `texts` may be the text, an objective and the text, or the task itself, to which `column` does
    not apply, and `size` only where it has none.
    """
    if isinstance(texts, TextAuxiliary):
        named = texts.path or texts.hub or texts.text == OWN_TEXT or isinstance(texts, GivenTexts)
        if not named:  # it would be left out
            raise UserError(f"auxiliary {name}: TextAuxiliary names no text; give it path=...")
        return texts
    objective: Any = MaskedLM()
    if isinstance(texts, tuple) and len(texts) == 2 and hasattr(texts[0], "collate"):
        objective, texts = texts
    if isinstance(texts, str) and texts == OWN_TEXT:
        return TextAuxiliary(objective=objective, text=OWN_TEXT)
    column = column or "text"
    settings: dict[str, Any] = {"objective": objective, "column": column, "size": size}
    if isinstance(texts, str | os.PathLike):
        return TextAuxiliary(**settings, path=str(texts))
    return GivenTexts(**settings, corpus=_corpus_of(texts, name, column))


def _corpus_of(texts: Any, name: str, column: str) -> Corpus:
    """Return texts in memory as a corpus, a missing one as a blank text."""
    if not isinstance(texts, datasets.Dataset):
        table = MemoryTable(_rows_of(texts, name, column), name)
        kind = datasets.Features({column: datasets.Value("string")})
        texts = datasets.Dataset.from_dict({column: list(texts_of(table, column))}, kind)
    if len(texts) == 0:
        raise UserError(f"auxiliary {name} holds no texts")
    texts = text_column(texts, column, name)
    return Corpus(name, texts, content_digest(texts))


def _rows_of(texts: Any, name: str, column: str) -> list[Any]:
    """Return a data frame, a column of one, or a list of texts or rows as rows."""
    if isinstance(texts, pd.DataFrame):
        return _rows_of_frame(texts, f"auxiliary {name}")
    items = texts.to_list() if isinstance(texts, pd.Series) else texts
    if not isinstance(items, Sequence) or isinstance(items, bytes):
        raise UserError(
            f"auxiliary {name} must be 'task' (the labelled texts), a path, texts or a data set, "
            f"or (objective, texts); got {type(texts).__name__}"
        )
    # not Path.exists(), which raises an error for a long text
    if items and all(isinstance(one, str) and os.path.exists(one) for one in items):  # noqa: PTH110
        raise UserError(f"auxiliary {name} is a list of files; give a folder or a pattern")
    return [item if isinstance(item, Mapping) else {column: item} for item in items]


def _rows_of_frame(frame: pd.DataFrame, name: str) -> list[Any]:
    check_names(name, map(str, frame.columns))
    return list(frame.to_dict("records"))


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
