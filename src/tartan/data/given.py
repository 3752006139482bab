"""Turns what a program passes (paths, lists, data sets, models) into tasks and encoders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import datasets
import pandas as pd
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Subset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tartan.data.corpus import Corpus, text_column
from tartan.data.corpus_files import texts_of
from tartan.data.file_task import FileTask
from tartan.data.table.arrow import content_digest, table_of_dataset
from tartan.data.table.base import Table, check_names
from tartan.data.table.memory import MemoryTable
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
"""Labelled examples: a file, a data set, a data frame, or rows (`{"text": ..., "label": ...}`, or
tuples)."""
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

    def table(self, split: str) -> Table | None:
        return self.tables.get(split)


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


def table_of(given: Examples, name: str) -> Table:
    """Return labelled examples as a table.

    Args:
        given: the examples.
        name: the argument through which they were given, for messages.

    Raises:
        UserError: they are in no known form.
    """
    if isinstance(given, str | os.PathLike):
        return open_table(Path(given))
    if isinstance(given, DataLoader):
        given = given.dataset
    given = _whole(given)
    if isinstance(given, datasets.Dataset):
        return table_of_dataset(name, given)
    if isinstance(given, datasets.DatasetDict | datasets.IterableDatasetDict):
        raise UserError(
            f"{name} is a {type(given).__name__}, of the splits {', '.join(map(str, given))}; give "
            'each split by itself: TartanData(data["train"], data["validation"], ...)'
        )
    if isinstance(given, Mapping):
        raise UserError(
            f"{name} is one mapping of columns; give datasets.Dataset.from_dict(...) or "
            "pandas.DataFrame(...)"
        )
    if isinstance(given, pd.DataFrame):
        given = _rows_of_frame(given, name)
    if isinstance(given, Iterable):
        return MemoryTable(given, name)
    if hasattr(given, "__getitem__"):  # a torch data set may have only this and a length
        return MemoryTable((given[index] for index in range(len(given))), name)
    raise UserError(f"{name} must be a path, a list of rows or a data set, got {type(given)}")


def _whole(given: Any) -> Any:
    """Return parts, joined parts or a stream of data sets as one, which knows the labels' names."""
    if isinstance(given, Subset):
        whole = _whole(given.dataset)
        return whole.select(given.indices) if isinstance(whole, datasets.Dataset) else given
    if isinstance(given, ConcatDataset):
        parts = [_whole(part) for part in given.datasets]
        if all(isinstance(part, datasets.Dataset) for part in parts):
            return datasets.concatenate_datasets(parts)
    if isinstance(given, datasets.IterableDataset):
        return datasets.Dataset.from_list(list(given), features=given.features)
    return given


def auxiliary_of(given: Texts, name: str, column: str | None, size: Size) -> TextAuxiliary:
    """Return an auxiliary task: of masked language modelling, unless one is given whole.

    Args:
        given: the text; an objective and the text; or the task itself, to which `column` does not
            apply, and `size` only where it has none.
        name: the task's name, for messages.
        column: the column that holds the text, where there are several.
        size: multiples of the labelled training examples, or `all`.

    Raises:
        UserError: the text is in no known form.
    """
    if isinstance(given, TextAuxiliary):
        unnamed = given.text != OWN_TEXT and given.path is None and given.hub is None
        if unnamed and not isinstance(given, GivenTexts):
            raise UserError(
                f"auxiliary {name}: TextAuxiliary names no text; give it path=... (a file, folder "
                'or glob) or hub=..., or text="task" for the labelled texts'
            )
        return given
    objective: Any = MaskedLM()
    if isinstance(given, tuple) and len(given) == 2 and hasattr(given[0], "collate"):
        objective, given = given
    if isinstance(given, str) and given == OWN_TEXT:
        return TextAuxiliary(objective=objective, text=OWN_TEXT)
    column = column or "text"
    settings: dict[str, Any] = {"objective": objective, "column": column, "size": size}
    if isinstance(given, str | os.PathLike):
        return TextAuxiliary(**settings, path=str(given))
    return GivenTexts(**settings, corpus=_corpus_of(given, name, column))


def _corpus_of(given: Any, name: str, column: str) -> Corpus:
    """Return texts in memory as a corpus, a missing one as a blank text.

    Raises:
        UserError: they are in no known form, or one is not a text.
    """
    if not isinstance(given, datasets.Dataset):
        table = MemoryTable(_rows_of(given, name, column), name)
        kind = datasets.Features({column: datasets.Value("string")})
        given = datasets.Dataset.from_dict({column: list(texts_of(table, column))}, kind)
    if len(given) == 0:
        raise UserError(f"auxiliary {name} holds no texts")
    texts = text_column(given, column, name)
    return Corpus(name, texts, content_digest(texts))


def _rows_of(given: Any, name: str, column: str) -> list[Any]:
    """Return a data frame, a column of one, or a list of texts or rows as rows."""
    if isinstance(given, pd.DataFrame):
        return _rows_of_frame(given, f"auxiliary {name}")
    items = given.to_list() if isinstance(given, pd.Series) else given
    if not isinstance(items, Sequence) or isinstance(items, bytes):
        raise UserError(
            f"auxiliary {name} must be 'task' (the labelled texts), a path, texts or a data set, "
            "for masked language modelling, or (objective, texts) for another objective; got "
            f"{type(given).__name__}"
        )
    if _are_files(items):
        raise UserError(
            f'auxiliary {name} is a list of files; give a folder or a pattern ("texts/*.txt")'
        )
    return [item if isinstance(item, Mapping) else {column: item} for item in items]


def _rows_of_frame(given: pd.DataFrame, name: str) -> list[Any]:
    check_names(name, map(str, given.columns))
    return list(given.to_dict("records"))


def _are_files(items: Sequence[Any]) -> bool:
    """Return whether one of the items is a path, or all are the names of files that exist."""
    if any(isinstance(item, os.PathLike) for item in items):
        return True
    # not Path.exists(), which raises an error for a long text
    named = (isinstance(item, str) and os.path.exists(item) for item in items)  # noqa: PTH110
    return len(items) > 0 and all(named)


def encoder_of(given: AnyEncoder) -> Encoder:
    """Load an encoder, in whichever form it is given.

    Raises:
        UserError: the encoder cannot be found, is in no known form, or its body cannot be trained.
    """
    if given == "minilm":
        return load_encoder(PackagedEncoder())
    if given == "tiny":
        return load_encoder(TinyEncoder())
    if isinstance(given, str | os.PathLike):
        return load_encoder(PretrainedEncoder(str(given)))
    if isinstance(given, PreTrainedModel):
        raise UserError(
            f"encoder is a {type(given).__name__} alone; give its tokenizer too: "
            "encoder=(model, tokenizer)"
        )
    if isinstance(given, nn.Module) and not hasattr(given, "body"):
        raise UserError(_no_model(given))
    if not isinstance(given, tuple) and hasattr(given, "load"):
        return load_encoder(given)
    if isinstance(given, tuple) and len(given) != 2:
        raise UserError(f"encoder is a tuple of {len(given)}; give encoder=(model, tokenizer)")
    encoder = _of_model(*given) if isinstance(given, tuple) else given
    if isinstance(encoder, TextEncoder):
        check_body(encoder)
    return encoder


def _of_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> TextEncoder:
    if not isinstance(model, PreTrainedModel):
        raise UserError(_no_model(model))
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise UserError(
            f"encoder=(model, tokenizer): the second is a {type(tokenizer).__name__}; give the "
            "tokenizer itself, as Transformers' AutoTokenizer loads it"
        )
    name = str(getattr(model.config, "name_or_path", "") or type(model).__name__)
    body, head = model.base_model, None
    if type(model).__name__.endswith(("ForMaskedLM", "ForPreTraining")):
        body, head = split_masked_lm(model, set())
    if tokenizer.pad_token_id is None:
        raise UserError(f"encoder {name}: its tokenizer has no padding token; set pad_token")
    return TextEncoder(name, body.train(), tokenizer, head)


def _no_model(given: object) -> str:
    return (
        f"encoder must be (model, tokenizer) of Transformers, got {type(given).__name__}; a body "
        "of your own is an Encoder (CONTRIBUTING.md), or trained in a loop of your own "
        "(docs/lightning.md)"
    )
