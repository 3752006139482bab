"""Facts about a task, its texts and the command, on which advice rests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """The facts that the rules look at.

    Attributes:
        text: whether the end task is one of text.
        masks: whether the encoder can be trained by masked language modelling.
        brings_head: whether it brings a trained masked-LM head.
        train: training examples.
        dev: validation examples.
        rarest: the rarest label in train, and its training examples.
        missing_in_dev: labels of train that dev has no example of.
        imbalance: examples of the most frequent label for one of the rarest.
        metric: by which the checkpoint is chosen.
        weighs_labels: whether the loss makes labels count alike; None where it cannot.
        domain: auxiliary text that is not the end task's own: how many texts (images of other
            classes, where the task is one of images).
        seen: share of dev and test examples whose content is in train.
        contradicted: share of the training examples whose text has several labels.
        held_out_in_corpus: dev and test examples whose text is in a domain corpus.
        cut: share of the texts that are cut, by source, and a `max_length` that would do.
        longest_read: the longest input that the encoder reads; None for no limit.
        more_pieces: pieces a word of the task's text, in multiples of general English; None where
            words cannot be told apart.
        memory: share of the machine's memory that the configured method takes; None unknown.
        method: the configured method.
        batch_size: of the configured method's stage with a meta-gradient; None without one.
        head_from_batch: whether that stage fits the meta head on its own batch.
        warms_heads: whether the configured method trains the masked-LM heads first.
        configured: kinds (`domain`, `task`) of the config's auxiliary tasks that can be read.
        unusable: whether the config names auxiliary tasks that cannot.
        experiment: that the command names; empty for none.
    """

    text: bool
    masks: bool
    brings_head: bool
    train: int
    dev: int
    rarest: tuple[str, int]
    missing_in_dev: tuple[str, ...]
    imbalance: float
    metric: str
    weighs_labels: bool | None
    domain: int
    seen: dict[str, float]
    contradicted: float
    held_out_in_corpus: int
    cut: dict[str, tuple[float, int]]
    longest_read: int | None
    more_pieces: float | None
    memory: float | None
    method: str
    batch_size: int | None
    head_from_batch: bool
    warms_heads: bool
    configured: frozenset[str]
    unusable: bool
    experiment: str = ""
