"""The core of training: passes, task weightings, the meta head, and the training step.

Read `src.core.weighting.meta` first: it is Algorithm 1. It asks `src.core.step` for gradients,
which `src.core.passes` computes from a `src.core.body`. Nothing here depends on text, images or a
machine's kernels: a task is an objective, a head and batches.
"""
