"""Lists the facts about a task, its texts and the command that recommendations look at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """The facts that the rules look at.

    Attributes:
        text: whether the end task is on text.
        masks: whether the encoder can be trained by masked language modelling.
        brings_head: whether the encoder brings a trained masked-LM head.
        parameters: number of parameters of the encoder's body.
        train: number of training examples.
        dev: number of validation examples.
        labels: the labels, each with the number of its training examples.
        missing_in_dev: labels of train of which dev has no example.
        missing_in_test: labels of train of which test has no example.
        imbalance: ratio of the most frequent label's training examples to the rarest's.
        metric: the metric by which the checkpoint is chosen.
        weighs_labels: whether the loss has class weights; None where the classifier has no such
            option.
        domain: number of auxiliary texts that are not the end task's own (for images, of images of
            other classes).
        unlabelled: number of the end task's texts without a label.
        seen: share of dev and test examples whose content is in train.
        near: share of dev and test examples whose text is not in train, but a near-duplicate is.
        test_in_dev: number of test examples whose content is in dev.
        contradicted: share of the training examples whose text occurs with several labels.
        held_out_in_corpus: number of dev and test examples whose text is in a domain corpus.
        cut: by source, the share of its texts that are cut, and a `max_length` that would be
            enough.
        longest_read: the longest input that the encoder reads; None for no limit.
        more_pieces: pieces per word in the task's text, relative to general English; None where
            words cannot be told apart, or too many are unknown.
        unknown: share of the words that the encoder's vocabulary lacks, by source: train and the
            domain corpora.
        memory: share of the machine's memory that the configured method takes; None if unknown.
        method: the configured method.
        batch_size: batch size of the configured method's stage with a meta-gradient; None without
            one.
        head_from_batch: whether that stage fits the meta head on its own batch.
        warms_heads: whether the configured method trains the masked-LM heads first.
        configured: kinds (`domain`, `task`) of the config's auxiliary tasks that can be read.
        unusable: whether the config names auxiliary tasks that cannot be read.
        oddities: what is odd about texts and labels, beside what the other facts are about.
        experiment: the experiment that the command names; empty for none.
    """

    text: bool
    masks: bool
    brings_head: bool
    parameters: int
    train: int
    dev: int
    labels: tuple[tuple[str, int], ...]
    missing_in_dev: tuple[str, ...]
    missing_in_test: tuple[str, ...]
    imbalance: float
    metric: str
    weighs_labels: bool | None
    domain: int
    seen: dict[str, float]
    near: dict[str, float]
    test_in_dev: int
    contradicted: float
    held_out_in_corpus: int
    cut: dict[str, tuple[float, int]]
    longest_read: int | None
    more_pieces: float | None
    unknown: dict[str, float]
    memory: float | None
    method: str
    batch_size: int | None
    head_from_batch: bool
    warms_heads: bool
    configured: frozenset[str]
    unusable: bool
    unlabelled: int = 0
    oddities: tuple[str, ...] = ()
    experiment: str = ""
