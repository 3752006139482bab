"""Collects everything that `python -m src.check` finds out about a run."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import pandas as pd
import torch
from omegaconf import DictConfig

from tartan.check.counts import Counts, count_labels
from tartan.check.estimate import Measured, MethodEstimate, batch_sizes, estimate
from tartan.check.facts import Facts
from tartan.check.inputs import Inputs, Source, read_inputs
from tartan.check.leakage import (
    InCorpus,
    Repeated,
    Shared,
    contents_of,
    in_corpus,
    repeated,
    shared,
)
from tartan.check.lengths import Lengths, lengths_of
from tartan.check.near import NearDuplicate, near_duplicates
from tartan.check.rates import PassTimer
from tartan.check.recommendation import Recommendation, recommend
from tartan.check.same_text import SameText, same_texts
from tartan.check.sample import sample_of
from tartan.check.schedule import MethodPlan, method_plans
from tartan.check.table_experiments import experiment_asked_for
from tartan.check.vocabulary import Vocabulary, reference_vocabulary, vocabulary_of
from tartan.core.memory import peak_of_process
from tartan.data.image_task import ImageTask
from tartan.data.overlap import HeldOutGrams
from tartan.data.remarks import Kind
from tartan.data.text_task import TextTask
from tartan.encoders.text_encoder import TextEncoder
from tartan.experiment.fine_tuning_baseline import requested_baseline
from tartan.experiment.known_options import check_top_level
from tartan.experiment.prepare import enabled_stages
from tartan.methods.memory import memory_advice

_TOLD: frozenset[Kind] = frozenset(
    {"repeated", "shared", "absent", "imbalance", "truncation", "in_corpus"}
)
"""Kinds of remarks that are left out: tables and other warnings say the same."""


@dataclass(frozen=True)
class Findings:
    """The findings about a run.

    Attributes:
        task: the end task's name.
        metric: the metric by which its checkpoint is chosen.
        encoder: the encoder's name.
        method: the configured method.
        counts: number of examples of each label.
        unlabelled: number of the task's texts without a label.
        lengths: lengths of the texts of each split and domain corpus; empty for images.
        vocabulary: how words are split into pieces, in general English first, then in the task's
            text and each domain corpus; empty for images.
        repeated: content that a split holds more than once; empty where contents are not known.
        shared: content that two splits share.
        same: texts that occur more than once, with their places; none for images.
        near: dev and test examples that nearly duplicate a training example; none for images.
        corpora: content of dev and test that is in a domain corpus.
        auxiliaries: number of examples of each auxiliary task that could be read.
        unusable: auxiliary tasks that the method does not train, and why they cannot be read.
        estimates: estimates for each method that suits the data.
        missing: the other methods, and what they would need.
        measured: the measurements from which the estimates are made.
        process: peak memory of the process before the measurements [bytes].
        memory: memory of the machine, or of the accelerator if there is one; None if unknown
            [bytes].
        remarks: warnings that the run itself will log when it starts, without those about texts and
            labels, which are among the recommendation's.
    """

    task: str
    metric: str
    encoder: str
    method: str
    counts: Counts
    unlabelled: int
    lengths: list[Lengths]
    vocabulary: list[Vocabulary]
    repeated: list[Repeated]
    shared: list[Shared]
    same: list[SameText]
    near: list[NearDuplicate]
    corpora: list[InCorpus]
    auxiliaries: dict[str, int]
    unusable: dict[str, str]
    estimates: list[MethodEstimate]
    missing: dict[str, str]
    measured: Measured
    process: int
    memory: int | None
    remarks: list[str]


def findings_of(config: DictConfig) -> tuple[Findings, Recommendation]:
    """Read and count what a run would read, and measure a few passes; train nothing.

    Raises:
        UserError: an error that would end the run before its first step.
    """
    with tempfile.TemporaryDirectory() as folder, _remarks() as (remarks, oddities):
        config.run.folder = folder  # loggers are checked with one, as they are in a run
        stages, baseline = enabled_stages(config), requested_baseline(config)
        check_top_level(config, beside=["output"])
        inputs = read_inputs(config, stages)
        plans, missing = method_plans(config, inputs)
        task, texts = inputs.prepared.end_task, inputs.labelled_texts
        sources, contents = inputs.sources(), _contents(inputs)
        lengths, vocabulary = _look_at_texts(sources, inputs.encoder_of_text)
        held_out = HeldOutGrams.of(task.evaluated_texts) if isinstance(task, TextTask) else None
        corpora = [
            in_corpus(source.name, source.texts, contents, held_out)
            for source in sources
            if source.domain and held_out is not None
        ]
        near = [
            near_duplicates(split, own, texts["train"])
            for split, own in texts.items()
            if split != "train"
        ]
        process = peak_of_process()
        with memory_advice(config, "micro_batch_size", "the measured passes"):
            measured = _measure(config, inputs, plans)
        estimates = [
            estimate(
                plan,
                measured,
                tested=bool(config.evaluate_test),
                with_baseline=plan.configured and baseline is not None,
            )
            for plan in plans
        ]
        found = Findings(
            task=task.name,
            metric=task.metric,
            encoder=inputs.prepared.encoder.name,
            method=str(config.method.name),
            counts=count_labels(task.labels, inputs.labels()),
            unlabelled=inputs.unlabelled,
            lengths=lengths,
            vocabulary=vocabulary,
            repeated=[repeated(split, own) for split, own in contents.items()],
            # dev against train, test against train, test against dev
            shared=[
                shared(split, contents[split], other, contents[other])
                for other, split in combinations(contents, 2)
            ],
            same=same_texts(texts, task.labels),
            near=list(chain.from_iterable(near)),
            corpora=corpora,
            auxiliaries={n: len(examples.rows) for n, (_, examples) in inputs.auxiliaries.items()},
            unusable=inputs.unusable,
            estimates=estimates,
            missing=missing,
            measured=measured,
            process=process,
            memory=_memory_of(measured.machine.device),
            remarks=remarks,
        )
        facts = _facts(config, inputs, plans, found, tuple(dict.fromkeys(oddities)))
        return found, recommend(facts)


def _look_at_texts(
    sources: list[Source], encoder: TextEncoder | None
) -> tuple[list[Lengths], list[Vocabulary]]:
    lengths, vocabulary = [], []
    for source in sources:
        sample = sample_of(source.texts, source.name)
        if encoder is None or not sample.texts:
            continue
        lengths.append(lengths_of(source, sample, encoder))
        if source.domain or source.name == "train":
            words = vocabulary_of(source.name, sample.texts, encoder)
            vocabulary += [words] if words is not None else []
    return lengths, [reference_vocabulary(encoder), *vocabulary] if encoder and vocabulary else []


def _contents(inputs: Inputs) -> dict[str, pd.DataFrame]:
    """Return the contents of the splits; empty for kinds of tasks that are not known here."""
    task = inputs.prepared.end_task
    contents: dict[str, list[Any]] = {n: own.whole for n, own in inputs.labelled_texts.items()}
    if isinstance(task, ImageTask):
        images = {split: getattr(task, split).images for split in inputs.split_names}
        contents = {split: [image.tobytes() for image in own] for split, own in images.items()}
    labels = inputs.labels()
    return {split: contents_of(own, labels[split]) for split, own in contents.items()}


def _measure(config: DictConfig, inputs: Inputs, plans: list[MethodPlan]) -> Measured:
    bench = PassTimer(config, inputs, batch_sizes(plans))
    rates = bench.rates()
    splits = inputs.prepared.splits
    return Measured(bench.machine(), rates, bench.positions, _size(splits.dev), _size(splits.test))


def _size(rows: Any) -> int:
    """Return the number of positions in an evaluation, whose batches have hardly any padding."""
    if "input_ids" not in rows.column_names:
        return len(rows)
    column = rows.with_format("arrow")["input_ids"]
    return sum(len(chunk.flatten()) for chunk in column[:].chunks)


def _facts(
    config: DictConfig,
    inputs: Inputs,
    plans: list[MethodPlan],
    found: Findings,
    oddities: tuple[str, ...],
) -> Facts:
    encoder, counts, loss = inputs.encoder_of_text, found.counts, config.classifier
    own = next(plan for plan in plans if plan.configured)
    learning = [stage for stage in own.stages if stage.meta_gradient]
    train = next((one for one in found.vocabulary if one.source == "train"), None)
    return Facts(
        experiment=experiment_asked_for(),
        text=encoder is not None,
        masks=encoder is not None and encoder.tokenizer.mask_token_id is not None,
        brings_head=encoder is not None and encoder.mlm_head is not None,
        parameters=sum(p.numel() for p in inputs.prepared.encoder.body.parameters()),
        train=counts.of("train"),
        dev=counts.of("dev"),
        labels=tuple(zip(counts.labels, counts.splits["train"], strict=True)),
        missing_in_dev=counts.missing("dev"),
        missing_in_test=counts.missing("test") if "test" in counts.splits else (),
        imbalance=counts.imbalance,
        metric=found.metric,
        weighs_labels=loss.class_weights is not None if "class_weights" in loss else None,
        domain=_domain_examples(inputs),
        seen={p.split: p.folded / p.examples for p in found.shared if p.other == "train"},
        near={
            split: sum(one.split == split for one in found.near) / counts.of(split)
            for split in counts.splits
            if split != "train"
        },
        test_in_dev=sum(p.folded for p in found.shared if (p.split, p.other) == ("test", "dev")),
        contradicted=sum(r.contradicted / r.examples for r in found.repeated[:1]),  # of train
        held_out_in_corpus=max((sum(one.folded.values()) for one in found.corpora), default=0),
        cut={one.source: (one.cut, one.enough) for one in found.lengths},
        longest_read=None if encoder is None else encoder.max_positions,
        more_pieces=None if train is None else train.times(found.vocabulary[0]),
        unknown={one.source: one.unknown for one in found.vocabulary[1:]},
        memory=_memory_share(found),
        method=own.name,
        batch_size=learning[0].settings.batch_size if learning else None,
        head_from_batch=any(
            s.settings.meta_head.kind == "separate" and not s.settings.meta_head.extra_examples
            for s in learning
        ),
        warms_heads=any(stage.settings.freeze_body for stage in own.stages),
        configured=frozenset(inputs.auxiliaries[name][0].kind for name in inputs.configured),
        unusable=bool(inputs.unusable),
        unlabelled=inputs.unlabelled,
        oddities=oddities,
    )


def _domain_examples(inputs: Inputs) -> int:
    task = inputs.prepared.end_task
    if isinstance(task, ImageTask):
        return len(task.others)
    return sum(len(examples.rows) for _, examples in inputs.domain_texts().values())


@contextmanager
def _remarks() -> Iterator[tuple[list[str], list[str]]]:
    """Collect this project's warnings in two lists instead of printing them.

    The second list has those about texts and labels, without the kinds in `_TOLD`.
    """
    said: list[str] = []
    odd: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kind = getattr(record, "kind", None)  # of those about texts and labels
            if kind not in _TOLD:
                (said if kind is None else odd).append(record.getMessage())

    log, keep = logging.getLogger("tartan"), Keep(logging.WARNING)
    before = log.propagate
    log.addHandler(keep)
    log.propagate = False
    try:
        yield said, odd
    finally:
        log.removeHandler(keep)
        log.propagate = before


def _memory_share(found: Findings) -> float | None:
    """Return the share of the memory that the command's method takes; None if that is unknown.

    On a CPU it includes the process's own memory, which holds the parameters already.
    """
    if found.memory is None:
        return None
    own = next(method.bytes for method in found.estimates if method.configured)
    machine = found.measured.machine
    beside = found.process - machine.body if machine.device == "cpu" else 0
    return (own + beside) / found.memory


def _memory_of(device: str) -> int | None:
    """Return a device's memory [bytes]; None where the system does not tell."""
    if device != "cpu":
        return int(torch.cuda.mem_get_info()[1])
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
