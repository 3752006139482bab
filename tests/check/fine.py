"""The facts of a task that is as it should be."""

from __future__ import annotations

from tartan.check.facts import Facts

FINE = Facts(
    text=True,
    masks=True,
    brings_head=True,
    parameters=124_000_000,
    train=1000,
    dev=400,
    labels=(("rare", 100), ("often", 150)),
    missing_in_dev=(),
    missing_in_test=(),
    imbalance=1.5,
    metric="macro_f1",
    weighs_labels=True,
    domain=10_000,
    seen={"dev": 0.0, "test": 0.0},
    near={"dev": 0.0, "test": 0.0},
    test_in_dev=0,
    contradicted=0.0,
    held_out_in_corpus=0,
    cut={"train": (0.0, 64), "dev": (0.0, 64), "test": (0.0, 64), "dapt": (0.0, 64)},
    longest_read=512,
    more_pieces=1.05,
    unknown={"train": 0.001, "dapt": 0.001},
    memory=0.5,
    method="meta_tartan",
    batch_size=128,
    head_from_batch=True,
    warms_heads=False,
    configured=frozenset({"domain", "task"}),
    unusable=False,
)
"""Few labels, much text, and nothing to complain of."""
