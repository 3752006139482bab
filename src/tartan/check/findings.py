"""Collects what `tartan check` finds out about a run: its data, its cost, and advice."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import datasets
import pandas as pd
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from tartan.check import overlap, tokens
from tartan.check.advice import Recommendation, recommend
from tartan.check.trial import estimate_stages
from tartan.core.device import is_on_cuda
from tartan.data.auxiliary import Auxiliary, AuxiliaryExamples
from tartan.data.objective_space import ComposedAuxiliary
from tartan.data.prepared import Prepared
from tartan.data.text_task import TextTask
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.methods.stage import Stage
from tartan.runs.baselines import requested_baseline
from tartan.runs.prepare import auxiliary_context, enabled_stages, named_auxiliaries, prepare
from tartan.vision.task import ImageTask


@dataclass(frozen=True)
class Findings:
    """The findings about a run.

    Attributes:
        title: method, task and encoder.
        tables: `labels` (number of examples, by split), `lengths` and `vocabulary` (see `tokens`),
            `repeats`, `same`, `near` and `corpora` (see `overlap`), `stages` (see `trial`); those
            of texts are empty for images.
        with_baseline: whether the run fine-tunes at equal cost afterwards.
        remarks: warnings that the run itself will log.
    """

    title: str
    tables: dict[str, pd.DataFrame]
    with_baseline: bool
    memory_gib: float
    remarks: list[str]
    advice: Recommendation

    def as_json(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        entries = vars(self) | {"advice": asdict(self.advice)}
        for name, frame in entries.pop("tables").items():
            rows = frame.reset_index(names="name").astype(object)
            entries[name] = rows.where(rows.notna(), None).to_dict("records")
        return entries


def findings_of(config: DictConfig) -> Findings:
    """Read and count what a run would read, and train a few steps of each stage.

    Raises:
        UserError: an error that would end the run before its first step.
    """
    with tempfile.TemporaryDirectory() as folder, _warnings() as remarks:
        config.run.folder = folder
        stages, baseline = enabled_stages(config, beside=["output"]), requested_baseline(config)
        prepared = prepare(config, stages)
        auxiliaries = _all_auxiliaries(config, prepared, remarks)
        tables = _look_at_data(prepared, auxiliaries)
        tables["stages"] = estimate_stages(config, stages, prepared)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if is_on_cuda(str(config.trainer.accelerator)):
            memory = torch.cuda.mem_get_info()[1]
        facts = _facts(config, prepared, auxiliaries, stages, tables)
        share = tables["stages"]["GiB"].max() * 2**30 / memory
        return Findings(
            title=f"{config.method.name} on {prepared.end_task.name}, {prepared.encoder.name}",
            tables=tables,
            with_baseline=baseline is not None,
            memory_gib=memory / 2**30,
            remarks=list(dict.fromkeys(remarks)),
            advice=recommend(facts | {"memory": share}),
        )


Auxiliaries = dict[str, tuple[Auxiliary, AuxiliaryExamples]]


def _all_auxiliaries(config: DictConfig, prepared: Prepared, remarks: list[str]) -> Auxiliaries:
    """Return the auxiliary tasks of the run, and others of the config that can be read."""
    auxiliaries = dict(prepared.auxiliaries)
    context = auxiliary_context(
        config, prepared.encoder, end_task=prepared.end_task,
        train_examples=len(prepared.splits.train),
    )  # fmt: skip
    for name, auxiliary in named_auxiliaries(config).items():
        if name not in auxiliaries and not auxiliary.left_out:
            try:
                auxiliary.check(name, prepared.encoder)
                auxiliaries[name] = (auxiliary, auxiliary.examples(name, context))
            except UserError as error:  # the run would not read it: no reason to stop
                remarks.append(f"auxiliary {name} is not read: {error}")
    return auxiliaries


def _corpora(auxiliaries: Auxiliaries) -> dict[str, tuple[Auxiliary, AuxiliaryExamples]]:
    """Return the domain texts by the names of their options; objectives can share one."""
    found: dict[str, tuple[Any, AuxiliaryExamples]] = {}
    for name, (auxiliary, examples) in auxiliaries.items():
        if auxiliary.kind == "domain" and examples.texts is not None:
            source: Any = auxiliary
            if isinstance(auxiliary, ComposedAuxiliary):
                name, source = auxiliary.source.name, auxiliary.source.text
            found.setdefault(name, (source, examples))
    return found


def _look_at_data(prepared: Prepared, auxiliaries: Auxiliaries) -> dict[str, pd.DataFrame]:
    """Return the tables of `Findings` about labels and texts."""
    task, encoder = prepared.end_task, prepared.encoder
    examples = overlap.labelled_examples(prepared)
    splits = examples["split"].unique()
    labels = pd.crosstab(examples["label"], examples["split"])[[*splits]]
    labels = labels.reindex([*task.labels], fill_value=0)
    labels = labels.sort_values("train", ascending=False, kind="stable")
    if not isinstance(task, TextTask) or not isinstance(encoder, TextEncoder):
        of_texts = ("lengths", "repeats", "same", "near", "corpora", "vocabulary")
        return {"labels": labels} | dict.fromkeys(of_texts, pd.DataFrame())
    sources = {
        split: datasets.Dataset.from_dict({"text": part["text"].tolist()})
        for split, part in examples.groupby("split", sort=False)
    }
    limits = dict.fromkeys(sources, task.max_length)
    corpora = _corpora(auxiliaries)
    for name, (source, own) in corpora.items():
        assert own.texts is not None
        sources[name] = own.texts
        limits[name] = getattr(source, "max_length", None) or task.max_length
    samples = {name: tokens.sample_of(texts, name) for name, texts in sources.items()}
    samples = {name: texts for name, texts in samples.items() if texts}
    words = {name: texts for name, texts in samples.items() if name not in ("dev", "test")}
    texts = {name: sources[name] for name in corpora}
    return {
        "labels": labels,
        "lengths": tokens.lengths(samples, limits, encoder.tokenizer),
        "repeats": overlap.repeats(examples),
        "same": overlap.same_texts(examples),
        "near": overlap.near_duplicates(examples),
        "corpora": overlap.in_corpora(texts, examples, task.evaluated_texts),
        "vocabulary": tokens.vocabulary(words, encoder.tokenizer),
    }


def _facts(
    config: DictConfig,
    prepared: Prepared,
    auxiliaries: Auxiliaries,
    stages: dict[str, Stage],
    tables: dict[str, pd.DataFrame],
) -> dict[str, Any]:
    """Return the facts of `advice.yaml`, without the memory."""
    task, encoder, labels = prepared.end_task, prepared.encoder, tables["labels"]
    choices = HydraConfig.get().runtime.choices if HydraConfig.initialized() else {}
    heads = [stage for stage in stages.values() if not stage.meta_head.extra_examples]
    entries: dict[str, Any] = {
        "text": False,
        "masks": False,
        "parameters": sum(p.numel() for p in encoder.body.parameters()),
        "train": int(labels["train"].sum()),
        "dev": int(labels["dev"].sum()),
        "missing_in_dev": int((labels["dev"] == 0).sum()),
        "domain": sum(len(own.rows) for _, own in _corpora(auxiliaries).values()),
        "unlabelled": len(getattr(task, "unlabelled", None) or ()),
        "method": str(config.method.name),
        "experiment": str(choices.get("experiment") or ""),
        "kinds": "+".join(sorted({auxiliary.kind for auxiliary, _ in auxiliaries.values()})),
        "rarest_label": labels["train"].idxmin(),
        "rarest": int(labels["train"].min()),
    }
    if isinstance(task, ImageTask):
        entries["domain"] = len(task.others)
    if isinstance(encoder, TextEncoder):
        repeats, words = tables["repeats"], tables["vocabulary"]
        longest = tables["lengths"].sort_values("cut_%").iloc[-1]
        near = tables["near"]["split"].value_counts() / labels.sum()
        entries |= {
            "text": True,
            "masks": encoder.tokenizer.mask_token_id is not None,
            "contradicted": repeats["other_label"]["train"] / entries["train"],
            "test_in_dev": int(repeats["in_dev"].fillna(0).iloc[-1]),
            "near": near.max() if len(tables["near"]) else 0.0,
            "cut": longest["cut_%"] / 100,
            "cut_source": longest.name,
            "enough": int(longest["enough"]),
            "unknown": words["unknown_%"].iloc[1:].max() / 100,
            "more_pieces": words["times"].get("train", float("nan")),
        }
        entries |= {"longest_read": encoder.max_positions} if encoder.max_positions else {}
        if config.method.name == "meta_tartan" and heads:
            entries["meta_batch"] = heads[0].batch_size
    return entries


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect this project's warnings in a list instead of printing them."""
    messages: list[str] = []
    log, keep = logging.getLogger("tartan"), logging.Handler(logging.WARNING)
    keep.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    before, log.propagate = log.propagate, False
    log.addHandler(keep)
    try:
        yield messages
    finally:
        log.removeHandler(keep)
        log.propagate = before
