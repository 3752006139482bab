"""`result.json`: what a finished run says of itself, as plain JSON."""

from __future__ import annotations

import numpy as np
import pytest

from tartan.encoders.heads import ROW_MULTIPLE
from tests.in_process import recorded_run, toy


@pytest.fixture(scope="module")
def meta(data_dir, cache_dir, tmp_path_factory):
    """A META-TARTAN run on 2 x 48 lines of domain text."""
    options = ["auxiliary.dapt.size=2", "seed=3"]
    folder = tmp_path_factory.mktemp("meta")
    return recorded_run(toy(data_dir, cache_dir, "meta_tartan", *options), folder)


@pytest.fixture(scope="module")
def chain(data_dir, cache_dir, tmp_path_factory):
    """A chain of three stages, the domain text all there is."""
    options = ["auxiliary.size=all", "method.stages.tapt.max_steps=4"]
    folder = tmp_path_factory.mktemp("chain")
    return recorded_run(toy(data_dir, cache_dir, "dapt_tapt", *options), folder)


def test_auxiliaries_are_listed_with_size_and_examples(meta, chain, data_dir):
    dapt, tapt = meta.result["auxiliaries"]["dapt"], meta.result["auxiliaries"]["tapt"]
    assert (dapt["kind"], dapt["source"]) == ("domain", f"{data_dir}/corpus.txt")
    assert dapt["size"] == 2
    assert dapt["examples"] in (95, 96)  # one line of the corpus is blank
    assert (tapt["kind"], tapt["examples"]) == ("task", 48)
    everything = chain.result["auxiliaries"]["dapt"]
    assert (everything["size"], everything["examples"]) == ("all", 191)


@pytest.mark.parametrize("part", ["whole", "unseen"])
def test_the_confusion_on_test_counts_each_example_once(meta, part):
    scores = meta.result["test"][part]
    counts = np.array(scores["confusion"])
    assert counts.shape == (3, 3)
    assert counts.sum() == scores["examples"]
    assert scores["metrics"]["micro_f1"] == pytest.approx(counts.trace() / counts.sum())
    # a row a label: the toy's test split has ten texts of each, and one of train's with the first
    assert list(counts.sum(axis=1)) == ([11, 10, 10] if part == "whole" else [10, 10, 10])
    assert "confusion" not in meta.result["dev"][part]


def test_without_unseen_texts_there_is_no_score_of_them(data_dir, cache_dir, tmp_path):
    options = [f"task.{split}={data_dir}/toy/train.jsonl" for split in ("dev", "test")]
    result = recorded_run(toy(data_dir, cache_dir, "finetune", *options), tmp_path).result
    for split in ("dev", "test"):
        assert result[split]["unseen"] == {"examples": 0, "metrics": None}
        assert result[split]["whole"]["examples"] == 48


def test_each_stage_counts_what_went_through_the_body(chain):
    for stage in chain.result["stages"]:
        (task,) = stage["cost"]["examples"]
        batches = [chain.data[stage["name"]][step].tasks[task] for step in range(stage["steps"])]
        assert stage["cost"]["examples"][task] == 8 * stage["steps"]
        parts = [part for b in batches for part in b.micro_batches]
        tokens = sum(int(part.inputs["lengths"].sum()) for part in parts)
        positions = sum(part.inputs["input_ids"].numel() for part in parts)
        assert stage["cost"]["tokens"][task] == tokens
        assert stage["cost"]["padding_share"] == pytest.approx(1 - tokens / positions)


HIDDEN, LAYERS, CLASSES, META_HEAD_STEPS, META_HEAD_EXAMPLES = 32, 2, 3, 10, 8


def forward_of_body(batch):
    """Operations of the tiny encoder: two for each entry of a matrix, attention's products."""
    matrices = 4 * HIDDEN * HIDDEN + 2 * HIDDEN * 4 * HIDDEN
    total = 0
    for part in batch.micro_batches:
        tokens = part.inputs["input_ids"].numel()
        texts = part.inputs["lengths"].tolist()
        texts += [tokens - sum(texts)] if tokens > sum(texts) else []
        # texts of one multiple of 8 attend side by side, each as wide as the longest
        alike = {-(-n // 8): [m for m in texts if -(-m // 8) == -(-n // 8)] for n in texts}
        pairs = sum(len(lengths) * max(lengths) ** 2 for lengths in alike.values())
        total += 2 * LAYERS * (tokens * matrices + 2 * pairs * HIDDEN)
    return total


def forward_of_classifier(examples):
    return 2 * examples * HIDDEN * (HIDDEN + CLASSES)


def test_operations_of_each_task_are_those_of_its_batches(meta):
    """Against the encoder's arithmetic, written out; a training pass is three forward passes."""
    (stage,) = meta.result["stages"]
    steps = [meta.data["joint"][step] for step in range(stage["steps"])]
    flops = stage["cost"]["flops"]
    assert set(flops) == {"end_task", "dapt", "tapt", "meta_gradient", "meta_head"}
    for name, batches in (
        ("end_task", [step.tasks["end_task"] for step in steps]),
        ("meta_gradient", [step.meta_batch for step in steps]),
    ):
        body = sum(forward_of_body(batch) for batch in batches)
        head = sum(forward_of_classifier(batch.examples) for batch in batches)
        assert flops[name] == 3 * (body + head)
        assert stage["cost"]["tokens"][name] == sum(batch.tokens for batch in batches)
    vocabulary = len(meta.modules["joint"].heads["tapt"].bias)
    for name in ("dapt", "tapt"):
        batches = [step.tasks[name] for step in steps]
        parts = [part for batch in batches for part in batch.micro_batches]
        rows = sum(
            -(-part.units // ROW_MULTIPLE) * ROW_MULTIPLE for part in parts
        )  # what fills up costs too
        head = 2 * rows * HIDDEN * (HIDDEN + vocabulary)
        assert flops[name] == 3 * (sum(forward_of_body(batch) for batch in batches) + head)
    fitted = forward_of_classifier(META_HEAD_EXAMPLES) * META_HEAD_STEPS * len(steps)
    assert flops["meta_head"] == 3 * fitted
    assert meta.result["cost"]["flops"] == sum(flops.values())


def test_auxiliary_tasks_alone_are_not_said_to_be_weighted(data_dir, cache_dir, tmp_path):
    """Two corpora in one stage are mixed evenly, whatever the config's weighting."""
    second = [
        "+auxiliary_task@auxiliary.more=mlm_domain",
        f"auxiliary.more.path={data_dir}/corpus.txt",
    ]
    given = toy(data_dir, cache_dir, "dapt", "auxiliary.size=1", *second, "weighting=meta")
    result = recorded_run(given, tmp_path / "run").result
    assert result["stages"][0]["final_task_weights"] == {"dapt": 0.5, "more": 0.5}
    assert result["final_task_weights"] == {}
    assert result["weighting"] is None
