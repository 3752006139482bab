"""Turns what a program passes (paths, lists, data sets, models) into tasks and encoders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import datasets
import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tartan.data.corpus import Corpus, text_column
from tartan.data.file_task import FileTask
from tartan.data.table import Table, content_digest, joined, table_of_dataset, table_of_rows
from tartan.data.table_file import open_table
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

Examples: TypeAlias = str | os.PathLike[str] | datasets.Dataset | pd.DataFrame | Iterable[Any]
"""Labelled examples: a file or several, a data set, a data frame, or rows: mappings or tuples."""
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

    def _domain_corpus(
        self, end_task: TextTask | None, size: float | None, cache_dir: Path
    ) -> Corpus:
        return self.corpus or super()._domain_corpus(end_task, size, cache_dir)


def table_of(examples: Examples, name: str) -> Table:
    """Return labelled examples as a table; `name` is their argument's, for messages."""
    if isinstance(examples, str | os.PathLike):
        return open_table(Path(examples))
    if isinstance(examples, pd.DataFrame):
        examples = datasets.Dataset.from_pandas(examples, preserve_index=False)
    if isinstance(examples, datasets.Dataset):
        return table_of_dataset(name, examples)
    if isinstance(examples, Sequence) and all(isinstance(p, str | os.PathLike) for p in examples):
        return joined([open_table(Path(path)) for path in examples])
    rows: Any = examples
    if hasattr(rows, "__getitem__"):  # a torch data set has no iterator
        rows = [rows[index] for index in range(len(rows))]
    return table_of_rows(name, rows)


def auxiliary_of(texts: Texts, name: str, column: str | None, size: Size) -> TextAuxiliary:
    """Return auxiliary task `name`, of masked language modelling unless `texts` says otherwise.

    To a whole task `column` does not apply, and `size` only where it has none.
    """
    if isinstance(texts, TextAuxiliary):
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
    """Return texts in memory as a corpus."""
    if isinstance(texts, pd.DataFrame):
        texts = texts[column]
    if isinstance(texts, pd.Series):
        texts = texts.astype(object).where(texts.notna(), None).to_list()
    if isinstance(texts, list | tuple):
        # not Path.exists(), which raises an error for a long text
        if texts and all(isinstance(one, str) and os.path.exists(one) for one in texts):  # noqa: PTH110
            raise UserError(f"auxiliary {name} is a list of files; give a folder or a pattern")
        values = [one.get(column) if isinstance(one, Mapping) else one for one in texts]
        kind = datasets.Features({column: datasets.Value("string")})
        texts = datasets.Dataset.from_dict({column: values}, kind)
    if not isinstance(texts, datasets.Dataset):
        raise UserError(
            f"auxiliary {name} must be 'task', a path, texts or a data set: {type(texts).__name__}"
        )
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
