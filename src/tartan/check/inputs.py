"""Reads the data of a run, and the auxiliary texts that its method does not use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import datasets
import numpy as np
from hydra import compose
from omegaconf import DictConfig

from tartan.configuration.build import build
from tartan.data.auxiliary import Auxiliary, AuxiliaryExamples
from tartan.data.objective_space import ComposedAuxiliary
from tartan.data.prepared import Prepared
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.experiment.prepare import auxiliary_context, named_auxiliaries, prepare
from tartan.methods.stage import Stage

IMPLIED = "tapt"
"""Name of the auxiliary task on the end task's own text, where the config has no such task."""


@dataclass(frozen=True)
class Source:
    """Texts that an encoder reads.

    Attributes:
        name: name of a split, or of a text's options below `auxiliary`.
        texts: rows with `text`, blank ones included.
        rows: the same rows as the encoder reads them, cut.
        max_length: length at which they are cut [tokens].
        domain: whether this is text other than the end task's own.
    """

    name: str
    texts: datasets.Dataset
    rows: datasets.Dataset
    max_length: int
    domain: bool = False


@dataclass(frozen=True)
class Inputs:
    """The data of a run, and of the auxiliary tasks that its method does not use.

    Attributes:
        prepared: data and encoder as the run itself prepares them.
        auxiliaries: settings and examples of each auxiliary task that can be read, whether or not
            the method trains it; the end task's own text is always among them.
        configured: names of the auxiliary tasks that are in the config.
        unusable: auxiliary tasks that the method does not train, and why they cannot be read.
    """

    prepared: Prepared
    auxiliaries: dict[str, tuple[Auxiliary, AuxiliaryExamples]]
    configured: tuple[str, ...]
    unusable: dict[str, str]

    @property
    def encoder_of_text(self) -> TextEncoder | None:
        """The encoder, if it reads text; else None."""
        encoder = self.prepared.encoder
        return encoder if isinstance(encoder, TextEncoder) else None

    @property
    def split_names(self) -> tuple[str, ...]:
        """Names of the end task's splits: `train`, `dev`, and `test` unless it is without one."""
        return ("train", "dev", "test") if self.prepared.has_test else ("train", "dev")

    @property
    def unlabelled(self) -> int:
        """Number of the end task's texts without a label, which `auxiliary=tapt` reads too."""
        found = getattr(self.prepared.end_task, "unlabelled", None)
        return 0 if found is None else len(found)

    def labels(self) -> dict[str, np.ndarray]:
        """Return the label indices of each split, int `(examples,)`."""
        splits = self.prepared.splits
        return {
            name: np.asarray(getattr(splits, name).with_format("numpy")["label"], dtype=np.int64)
            for name in self.split_names
        }

    @property
    def labelled_texts(self) -> dict[str, LabelledTexts]:
        """The texts of each split; empty for images."""
        task = self.prepared.end_task
        text = isinstance(task, TextTask)
        return {name: getattr(task, name) for name in self.split_names} if text else {}

    def sources(self) -> list[Source]:
        """Return the texts of the splits and of the auxiliary tasks; empty for images."""
        task, splits = self.prepared.end_task, self.prepared.splits
        if not isinstance(task, TextTask):
            return []
        found = []
        for name, labelled in self.labelled_texts.items():
            texts = datasets.Dataset.from_dict({"text": labelled.whole})
            found.append(Source(name, texts, getattr(splits, name), task.max_length))
        for name, (own, examples) in self.domain_texts().items():
            if examples.texts is not None:
                length = task.max_length if own is None else own
                found.append(Source(name, examples.texts, examples.rows, length, domain=True))
        return found

    def domain_texts(self) -> dict[str, tuple[int | None, AuxiliaryExamples]]:
        """Return the `max_length` and examples of each text of the domain.

        They are named by their options below `auxiliary`; a text that the objectives of a space
        share is there once.
        """
        found: dict[str, tuple[int | None, AuxiliaryExamples]] = {}
        for name, (auxiliary, examples) in self.auxiliaries.items():
            if auxiliary.kind == "domain":
                text: object = auxiliary
                if isinstance(auxiliary, ComposedAuxiliary):
                    name, text = auxiliary.source.name, auxiliary.source.text
                found.setdefault(name, (getattr(text, "max_length", None), examples))
        return found

    @property
    def all_prepared(self) -> Prepared:
        """What the run prepares, with every auxiliary task that can be read."""
        return replace(self.prepared, auxiliaries=self.auxiliaries)


def read_inputs(config: DictConfig, stages: Mapping[str, Stage]) -> Inputs:
    """Read what the run reads, and then the other auxiliary tasks in the config.

    Raises:
        UserError: an error that would end the run before its first step.
    """
    prepared = prepare(config, stages)
    encoder = prepared.encoder
    context = auxiliary_context(
        config,
        encoder,
        end_task=prepared.end_task,
        train_examples=len(prepared.splits.train),
    )
    auxiliaries, unusable = dict(prepared.auxiliaries), {}
    named = named_auxiliaries(config)
    others = {
        name: auxiliary
        for name, auxiliary in named.items()
        if name not in auxiliaries and not auxiliary.left_out
    }
    masks = isinstance(encoder, TextEncoder) and encoder.tokenizer.mask_token_id is not None
    if masks and not any(auxiliary.kind == "task" for auxiliary in named.values()):
        own = compose("check", overrides=["auxiliary=tapt", "method=tapt"]).auxiliary.tapt
        free = IMPLIED
        while free in named:
            free += "_own"
        others[free] = build(own, f"auxiliary.{IMPLIED}")
    for name, auxiliary in others.items():
        try:
            auxiliary.check(name, encoder)
            auxiliaries[name] = (auxiliary, auxiliary.examples(name, context))
        except UserError as error:  # the run would not read it either: said, but no reason to stop
            unusable[name] = str(error)
    return Inputs(
        prepared, auxiliaries, tuple(name for name in named if name in auxiliaries), unusable
    )
