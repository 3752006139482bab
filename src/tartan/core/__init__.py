"""The core of training: passes, task weightings, the meta head, and the training step.

Read `tartan.core.weighting.meta` first: it is Algorithm 1. It asks `step` for gradients, which
`passes` computes from a `body`. Nothing here depends on text, images or a
machine's kernels: a task is an objective, a head and batches.
"""
